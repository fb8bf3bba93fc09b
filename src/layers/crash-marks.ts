import { type Clock, pause } from '../model/clock.ts'
import type { Delivery, Released, Settled, Settlement } from '../model/delivery.ts'
import { settled } from '../model/delivery.ts'
import { newId } from '../model/ids.ts'
import type { Store } from '../store/store.ts'
import { isGone, lost } from '../transport/outcomes.ts'
import { givenBack, isPlain, untouched } from '../transport/settling.ts'
import type { ReceiveOptions, Subscription, Transport } from '../transport/transport.ts'
import {
  type CrashBook,
  type CrashEntry,
  crashBook,
  crashKeyOf,
  NOBODY_ALONE,
} from './crash-book.ts'
import { namelessAsCopies } from './nameless.ts'
import { type Neighbours, neighbours } from './neighbours.ts'
import { seemsOurs, stillOurs } from './still-ours.ts'
import { isSuspect, type Mark, type SuspectMarks, suspectMarks } from './suspect-marks.ts'
import { type WaitingSuspects, waitingSuspects } from './waiting-suspects.ts'
import { type Woken, wakeable } from './wakeable.ts'

export interface CrashMarksOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: () => number
  /** Whether the layer below gives failed messages back as copies (`copies`), or all of them in their place. */
  readonly copied: boolean
}

/**
 * Counts crashes where the broker does not tell who vanished. A message that was handed out before is a *suspect*: whoever gets
 * it writes its name into the store first. Who finds the name of somebody else there knows that he vanished: one attempt of
 * class crashed, and from now on it runs alone, and is not even marked before all that this consumer has in hand is settled: their
 * death would be blamed on it. The first handing out is not marked, so its crash is not seen, and it costs
 * nothing. A holder that lives and lost its claim takes its name back.
 */
export function crashMarks(inner: Transport, options: CrashMarksOptions): Transport {
  const { store, clock, random } = options
  const me = newId(clock, random)
  return {
    ...inner,
    traits: { ...inner.traits, countsCrashes: 'repeated' },
    subscribe: async (queue, subscribeOptions) => {
      const subscription = await inner.subscribe(queue, subscribeOptions)
      const book = crashBook(store, queue)
      const { leaseMs } = subscribeOptions
      const marks = suspectMarks({ book, clock, me })
      const isBusy = (): boolean => marks.size > 0
      const giveBack = async (deliveries: readonly Delivery[]): Promise<void> => {
        await marks.begin([], deliveries)
        await subscription.settle(deliveries.map(untouched))
      }
      const { renew } = subscription
      const waiting = waitingSuspects({ renew, giveBack, clock, leaseMs, isBusy })
      const inHand = neighbours(clock, leaseMs)
      const parts = { inner: subscription, book, marks, waiting, inHand, leaseMs }
      return markingSubscription({ ...options, ...parts })
    },
  }
}

interface Marking extends CrashMarksOptions {
  readonly inner: Subscription
  readonly book: CrashBook
  readonly marks: SuspectMarks
  readonly waiting: WaitingSuspects
  readonly inHand: Neighbours
  readonly leaseMs: number
}

function markingSubscription(marking: Marking): Subscription {
  const { inner, marks, waiting, inHand, clock, copied } = marking
  const wake = wakeable()
  let isClosed = false

  const below = async (options: ReceiveOptions): Promise<Woken> =>
    // Only one that is in hand can come back here.
    marks.size > 0
      ? wake.during(options, (signal) => inner.receive({ ...options, signal }))
      : { came: await inner.receive(options), isWoken: false }

  const mayGo = ({ alone }: Delivery): boolean => !alone || !inHand.any()

  /** Nothing more is asked for meanwhile, so it comes to that. False when the time was over before. */
  const untilSettled = async (options: ReceiveOptions): Promise<boolean> => {
    if (options.waitMs === 0) return false
    const { isWoken } = await wake.during(options, async (signal) => {
      await pause(clock, options.waitMs, signal)
      return []
    })
    return isWoken
  }

  const receive = async (options: ReceiveOptions): Promise<readonly Delivery[]> => {
    const { signal } = options
    const until = clock.now() + options.waitMs
    const stopped = waiting.asked()
    try {
      for (;;) {
        const isOver = (): boolean => signal.aborted || isClosed
        const next = isOver() ? undefined : waiting.take()
        const asked = { ...options, waitMs: Math.max(0, until - clock.now()) }
        if (next !== undefined && !mayGo(next)) {
          waiting.putBack(next)
          if (!(await untilSettled(asked)) || isOver()) return []
          continue
        }
        if (next !== undefined && !seemsOurs(next)) continue
        if (next !== undefined) return await handOutNext(marking, next)
        const { came, isWoken } = await below(asked)
        const known = copied ? await namelessAsCopies(inner, came) : came
        const out = known.length > 0 ? await handOut(marking, known) : known
        if (out.length > 0) return out
        if (came.length > 0) continue
        if (!isWoken || isOver()) return []
      }
    } finally {
      stopped()
    }
  }
  const { pauseLane, renew } = inner
  return {
    ...inner,
    receive,
    settle: async (batch) => {
      const isSimple = marks.size === 0 && waiting.size === 0
      const outcomes = await (isSimple ? inner.settle(batch) : settle(marking, batch, wake.wake))
      for (const [i, { delivery }] of batch.entries()) {
        if (isGone(outcomes[i])) inHand.remove(delivery)
      }
      if (waiting.size > 0 && !inHand.any()) wake.wake()
      return outcomes
    },
    ...(renew && {
      renew: async (batch, ms) => {
        const outcomes = await renew(batch, ms)
        inHand.add(batch.filter((_, i) => outcomes[i]?.ok))
        return outcomes
      },
    }),
    ...(pauseLane && {
      pauseLane: (lane, paused) => {
        waiting.pause(lane, paused)
        pauseLane(lane, paused)
        if (!paused) wake.wake()
      },
    }),
    close: async () => {
      isClosed = true
      waiting.close()
      // Before others can receive them: they would take us for somebody who vanished.
      await marks.loseAll()
      await inner.close()
      wake.wake()
    },
  }
}

async function handOutNext(
  { marks, waiting, inHand }: Marking,
  next: Delivery,
): Promise<readonly Delivery[]> {
  try {
    inHand.add([next])
    await marks.begin([next], [])
    return [next]
  } catch (error) {
    inHand.remove(next)
    waiting.putBack(next)
    throw error
  }
}

async function handOut(
  { inner, marks, waiting, inHand }: Marking,
  came: readonly Delivery[],
): Promise<readonly Delivery[]> {
  inHand.add(came)
  const suspects = came.filter(isSuspect)
  if (suspects.length === 0) return came
  try {
    const judged = await marks.judge(suspects)
    // Who stood still meanwhile must not look like the murderer of what others have.
    const gone = came.filter((one) => !seemsOurs(one))
    for (const one of gone) inHand.remove(one)
    const all = came.filter((one) => !gone.includes(one)).map((one) => judged.get(one) ?? one)
    const alone = all.filter((one) => one.alone)
    const together = all.filter((one) => !one.alone)
    for (const one of alone) inHand.remove(one)
    const isFree = together.length === 0 && !inHand.any()
    const first = isFree ? alone.slice(0, 1) : together
    const later = isFree ? alone.slice(1) : alone
    inHand.add(first)
    await marks.begin(first.filter(isSuspect), later)
    waiting.add(later)
    return first
  } catch (error) {
    // Nobody knows how often these killed their workers, so nobody may run them.
    await inner.settle(suspects.map(untouched)).catch(() => [])
    for (const one of suspects) inHand.remove(one)
    const fresh = came.filter((one) => !isSuspect(one))
    if (fresh.length > 0) return fresh
    throw error
  }
}

async function settle(
  marking: Marking,
  batch: readonly Settlement[],
  wake: () => void,
): Promise<readonly Settled[]> {
  const { inner, book, marks, waiting } = marking
  const marked = new Map<Settlement, Mark>()
  for (const one of batch) {
    const mark = marks.of(one.delivery)
    if (mark !== undefined) marked.set(one, mark)
  }
  const inPlace = batch.filter((one): one is Released => marked.has(one) && isInPlace(marking, one))
  const outcomes = await nobodyRuns(marking, inPlace)
  for (const one of inPlace) {
    const mark = marks.of(one.delivery)
    const isSaid = !outcomes.has(one)
    if (mark === undefined || !isPlain(one) || (isSaid && !mark.delivery.alone)) continue
    if (isLost(outcomes.get(one))) continue
    // What could not be said is run here again: nobody else may have it, and who gave it back may not try again.
    if (isSaid) marks.end(mark)
    else marks.lose(mark)
    waiting.add([mark.delivery])
    outcomes.set(one, settled)
    wake()
  }
  // Settled a moment ago, it waits here, and is no longer theirs.
  for (const one of batch) {
    if (!outcomes.has(one) && waiting.has(one.delivery)) outcomes.set(one, lost)
  }
  const rest = batch.filter((one) => !outcomes.has(one))
  const ended = rest.length === 0 ? [] : await inner.settle(rest)
  const over: string[] = []
  for (const [i, one] of rest.entries()) outcomes.set(one, ended[i] ?? lost)
  for (const [one, mark] of marked) {
    const outcome = outcomes.get(one)
    if (isLost(outcome)) marks.lose(mark)
    if (outcome?.ok !== true) continue
    marks.end(mark)
    if (!isInPlace(marking, one)) over.push(mark.key)
  }
  await book.forget(over)
  return batch.map((one) => outcomes.get(one) ?? lost)
}

function isLost(outcome: Settled | undefined): boolean {
  return outcome?.ok === false && outcome.fault.code === 'lost'
}

/** The message itself comes back, and not a copy that stands for it. */
function isInPlace({ copied }: Marking, one: Settlement): boolean {
  return one.as === 'released' && (!copied || isPlain(one))
}

/**
 * Says that nobody has these any more, before anybody can. Answers the outcomes of those of which it could not be said, and
 * which must not go back then, and of those that are no longer ours.
 */
async function nobodyRuns(
  { inner, book, store, leaseMs }: Marking,
  releases: readonly Released[],
): Promise<Map<Settlement, Settled>> {
  const outcomes = new Map<Settlement, Settled>()
  if (releases.length === 0) return outcomes
  const deliveries = releases.map(({ delivery }) => delivery)
  const ours = await stillOurs(inner, deliveries, leaseMs)
  const open = releases.filter(({ delivery }) => ours.has(delivery))
  for (const one of releases) if (!ours.has(one.delivery)) outcomes.set(one, lost)
  try {
    await book.write(new Map(open.map((one) => [crashKeyOf(one.delivery), entryAfter(one)])))
  } catch (error) {
    const fault = store.diagnose(error)
    for (const one of open) outcomes.set(one, { ok: false, fault })
  }
  return outcomes
}

function entryAfter({ delivery, ...release }: Released): CrashEntry {
  const { history, alone } = givenBack(delivery, release, Number.POSITIVE_INFINITY)
  return { history, runner: alone ? NOBODY_ALONE : undefined }
}
