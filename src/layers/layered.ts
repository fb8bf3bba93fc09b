import type { Clock } from '../model/clock.ts'
import type { Fault } from '../model/fault.ts'
import type { Logger } from '../model/logger.ts'
import type { Store } from '../store/store.ts'
import type { Transport } from '../transport/transport.ts'
import { abilitiesOf } from './abilities.ts'
import { byOrder } from './by-order.ts'
import { copies } from './copies.ts'
import { crashMarks } from './crash-marks.ts'
import { deadLetters } from './dead-letters.ts'
import { delays } from './delays.ts'
import { hold } from './hold.ts'
import { journals } from './journals.ts'
import { levelsProblem } from './levels.ts'
import { pauses } from './pauses.ts'
import { priorities } from './priorities.ts'
import { rememberedKeys } from './remembered-keys.ts'
import { settleEach } from './settle-each.ts'
import { soon } from './soon.ts'
import { isOfStore } from './watched-store.ts'

export interface LayeredOptions {
  /** Undefined: only what needs none is layered; see `storeNeeds`. */
  readonly store: Store | undefined
  readonly clock: Clock
  readonly logger: Logger
  readonly random: () => number
  /** The most levels that a queue names; absent: none does. */
  readonly levels?: number | undefined
}

/** What this transport lacks that only a store can bring, a phrase each; empty when it lacks nothing. */
export function storeNeeds(
  transport: Pick<Transport, 'traits' | 'browse' | 'retry' | 'letters'>,
): readonly string[] {
  return abilitiesOf(transport).flatMap(({ lack }) => (lack === undefined ? [] : [lack]))
}

/** What must be named for this transport, because neither answer is right for all; a sentence each. */
export function choiceNeeds({
  name,
  traits,
  retry,
}: Pick<Transport, 'name' | 'traits' | 'retry'>): readonly string[] {
  if (traits.settles !== 'upTo' || retry !== undefined) return []
  return [
    `retry: ${name} cannot take a single message back; name retry: 'hold' (its partition waits, order is kept) or retry: 'park' (a copy waits, order is not kept)`,
  ]
}

/**
 * The transport with every layer on top that its traits call for, innermost first: priorities where a queue names its levels; on a log
 * single settlements, and hold where it was named; delays, copies (journals where an order is kept, which a copy or a delay would break), marks of crashes, dead
 * letters, remembered keys, pauses. One that lacks nothing comes back as it is. Queues in order have a stack of their own where
 * the transport is another one for them; there are no levels there.
 */
export function layered(transport: Transport, options: LayeredOptions): Transport {
  const { ordered } = transport
  const top = stacked(transport, options)
  return ordered === undefined ? top : byOrder(top, stacked(ordered, { ...options, levels: 1 }))
}

function stacked(transport: Transport, options: LayeredOptions): Transport {
  const { store, clock, logger, random } = options
  const from = new Map(abilitiesOf(transport).map((ability) => [ability.need, ability.from]))
  let top = onLog(withLevels(transport, options), clock)
  if (store !== undefined && from.get('delays') === 'store') {
    top = delays(top, { store, clock, logger })
  }
  if (from.get('attempts') === 'layer') top = copies(top)
  if (store === undefined) return top
  if (from.get('attempts') === 'store') top = journals(top, store)
  if (from.get('crashes') === 'store') {
    top = crashMarks(top, { store, clock, random, copied: from.get('attempts') === 'layer' })
  }
  if (from.get('deadLetters') !== 'backend') top = buried(top, { ...options, store })
  if (from.get('keys') === 'store') top = rememberedKeys(top, store, clock)
  if (from.get('pauses') === 'store' && top.browse !== undefined) top = pauses(top, store, clock)
  if (top === transport) return top
  return { ...top, diagnose: (error) => diagnosed(error, transport, store) }
}

/** With the backend's own place for dead letters where it has one. Those that the store has from before are not forgotten in silence. */
function buried(
  top: Transport,
  { store, clock, random, logger }: LayeredOptions & { readonly store: Store },
): Transport {
  const { letters, ...rest } = top
  if (letters === undefined) return deadLetters(top, { store, clock, random })
  const { sendBatch } = top.traits.limits
  const on = deadLetters(rest, { store, shelf: letters, batch: sendBatch, clock, random })
  return {
    ...on,
    topology: {
      ...on.topology,
      ensure: async (queues, signal) => {
        await on.topology.ensure(queues, signal)
        for (const { name } of queues) await tellOfStored(store, name, { clock, logger })
      },
    },
  }
}

async function tellOfStored(
  store: Store,
  queue: string,
  { clock, logger }: Pick<LayeredOptions, 'clock' | 'logger'>,
): Promise<void> {
  const count = (await soon(clock, store.shelf.count(queue, {}))) ?? 0
  if (count === 0) return
  logger.warn(
    `queue "${queue}": ${count} dead letters are in the store and are not seen now, because dead letters are kept with the backend; with deadLetters: 'store' they are, and can be redriven`,
    { queue, count },
  )
}

/** Innermost: what the layers above copy, keep aside or bury goes back to its level like any other message. */
function withLevels(transport: Transport, { levels = 1, clock }: LayeredOptions): Transport {
  const { traits } = transport
  if (levels <= 1 || traits.priorities > 1 || levelsProblem(traits) !== undefined) return transport
  return priorities(transport, { most: levels, clock })
}

/** What a user chose for a log: settled one by one; the failed one holds its lane, or may leave its place as a copy. */
function onLog(transport: Transport, clock: Clock): Transport {
  if (transport.traits.settles !== 'upTo') return transport
  const each = settleEach(transport)
  return transport.retry === 'hold' ? hold(each, clock) : each
}

/** Either of the two may have thrown it. */
function diagnosed(error: unknown, transport: Transport, store: Store): Fault {
  if (isOfStore(error)) return store.diagnose(error)
  const fault = transport.diagnose(error)
  return fault.code === 'unknown' ? store.diagnose(error) : fault
}
