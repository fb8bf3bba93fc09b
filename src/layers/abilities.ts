import type { Traits } from '../transport/traits.ts'
import type { Transport } from '../transport/transport.ts'
import { levelsProblem } from './levels.ts'

/** What an app asks of its backend. */
export type Need =
  | 'delays'
  | 'attempts'
  | 'deadLetters'
  | 'keys'
  | 'pauses'
  | 'crashes'
  | 'priorities'

/** Who brings it: the backend itself, a layer over it, or a layer with the store. */
export interface Ability {
  readonly need: Need
  readonly from: 'backend' | 'layer' | 'store'
  /** A phrase: what it rests on, and what it costs. */
  readonly how: string
  /** Without it no app starts; undefined for what can be done without. */
  readonly lack?: string
}

/** Longer than any retry waits (an hour by default) and as long as a throttled message may wait. */
export const DELAY_NEEDED_MS = 86_400_000

interface Places {
  /** There is a place for dead letters; see `Transport.letters`. */
  readonly letters?: object
}

/** For each need, who brings it on this backend. A pure function of what the backend says of itself. */
export function abilitiesOf(
  backend: Pick<Transport, 'traits' | 'browse' | 'retry'> & Places,
): readonly Ability[] {
  const { browse } = backend
  const traits = asChosen(backend)
  return [
    delaysOf(traits),
    attemptsOf(traits),
    deadLettersOf(backend),
    keysOf(traits),
    browse?.setPaused === undefined
      ? { need: 'pauses', from: 'store', how: 'whoever received asks before handing out' }
      : native('pauses', 'remembered by the backend'),
    traits.countsCrashes === false
      ? {
          need: 'crashes',
          from: 'store',
          how: 'whoever gets a message again is written down first; a crash at the first handing out is not seen',
        }
      : native('crashes', 'a holder that vanished is one attempt'),
    ...prioritiesOf(backend.traits),
  ]
}

/** The same for all queues of an app: where those in order are another transport, what is otherwise with them, too. */
export function abilitiesOfApp(backend: Transport, hasOrder: boolean): readonly Ability[] {
  const { ordered } = backend
  const all = abilitiesOf(backend)
  if (ordered === undefined || !hasOrder) return all
  const others = abilitiesOf(ordered).filter(
    (one) => !all.some(({ need, how }) => need === one.need && how === one.how),
  )
  return [...all, ...others.map((one) => ({ ...one, how: `with orderingKey: ${one.how}` }))]
}

/** What a log can do with the layer that was named for it: held messages keep their order, copies do not. */
function asChosen({ traits, retry }: Pick<Transport, 'traits' | 'retry'>): Traits {
  if (traits.settles !== 'upTo' || retry === undefined) return traits
  return retry === 'hold'
    ? { ...traits, settles: 'each', release: 'delayed', uncountedRelease: true }
    : { ...traits, settles: 'each', release: 'immediate', uncountedRelease: true, order: 'none' }
}

function native(need: Need, how: string): Ability {
  return { need, from: 'backend', how }
}

function delaysOf({ delay, order, release }: Traits): Ability {
  if (delay !== 'none' && delay.maxMs >= DELAY_NEEDED_MS) {
    return native('delays', `up to ${days(delay.maxMs)} days`)
  }
  if (order !== 'none') {
    const held = release === 'delayed' ? 'a failed message waits in its place' : 'nothing waits'
    return native('delays', `${held}; a delayed send would leave its order, and is refused`)
  }
  const own = delay === 'none' ? 'all of them' : `those above ${delay.maxMs / 1_000} s`
  return {
    need: 'delays',
    from: 'store',
    how: `${own} wait in the store, and are sent when due`,
    lack: 'delays and backoff of up to a day',
  }
}

function attemptsOf({ keepsHistory, order, settles }: Traits): Ability {
  if (keepsHistory) return native('attempts', 'kept with the message')
  if (order !== 'none' || settles === 'upTo') {
    return {
      need: 'attempts',
      from: 'store',
      how: 'a journal beside messages that stay in their order',
      lack: 'the attempts of messages that stay in their order',
    }
  }
  return {
    need: 'attempts',
    from: 'layer',
    how: 'a failed message is a confirmed copy, then an ack: a crash between doubles, the order is that of the copies',
  }
}

function deadLettersOf({ traits, letters }: Pick<Transport, 'traits'> & Places): Ability {
  const need = 'deadLetters'
  if (traits.deadLetters === 'native')
    return native(need, 'listed, shown and redriven where they are')
  const steps = 'then acked; a redrive sends, then takes off: a crash between doubles'
  if (letters !== undefined) {
    return { need, from: 'layer', how: `put into a place of the backend for them, ${steps}` }
  }
  return {
    need,
    from: 'store',
    how: `put on the store’s shelf, ${steps}`,
    lack: 'dead letters that can be listed and redriven',
  }
}

/** None where nobody brings them: a queue that asks for levels is refused then. */
function prioritiesOf(traits: Traits): readonly Ability[] {
  const need = 'priorities'
  if (traits.priorities > 1) return [native(need, `${traits.priorities} levels, with ageing`)]
  if (levelsProblem(traits) !== undefined) return []
  const how = 'of a queue that names how many: a queue of the broker for each level, with ageing'
  return [{ need, from: 'layer', how }]
}

function keysOf({ dedupe }: Traits): Ability {
  if (dedupe !== 'none' && dedupe.windowMs === 'any') {
    return native('keys', 'remembered with the message, any window')
  }
  return {
    need: 'keys',
    from: 'store',
    how: 'reserved, sent, confirmed: two calls to the store for a message with a key, none without',
  }
}

function days(ms: number): number {
  return Math.floor(ms / 86_400_000)
}
