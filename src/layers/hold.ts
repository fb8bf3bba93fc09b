import type { Clock } from '../model/clock.ts'
import { closedError } from '../model/closed-error.ts'
import type { Claim, Delivery, Released, Settled, Settlement } from '../model/delivery.ts'
import { settled } from '../model/delivery.ts'
import { isGone, lost } from '../transport/outcomes.ts'
import type { ReceiveOptions, Subscription, Transport } from '../transport/transport.ts'
import { handedOutAgain } from './given-back.ts'
import { type HeldLane, heldLane } from './held-lane.ts'
import { wakeable } from './wakeable.ts'

/**
 * Tries a failed message of a log again in its place: its lane waits for it, and messages of one ordering key run one after
 * the other, so their order is kept. Other lanes go on; of the waiting one nothing more is fetched. A holder that goes away
 * takes the rest of the wait with it: the next one tries at once.
 */
export function hold(inner: Transport, clock: Clock): Transport {
  return {
    ...inner,
    traits: { ...inner.traits, release: 'delayed', uncountedRelease: true, order: 'perKey' },
    subscribe: async (queue, options) =>
      holdingSubscription(await inner.subscribe(queue, options), clock),
  }
}

function holdingSubscription(inner: Subscription, clock: Clock): Subscription {
  const wake = wakeable()
  const timers = new Set<() => void>()
  const lanes = heldLanes(inner)
  let isClosed = false

  const receive = async ({ max, waitMs, signal }: ReceiveOptions): Promise<readonly Delivery[]> => {
    const until = clock.now() + waitMs
    if (isClosed) throw closedError('the subscription')
    for (;;) {
      if (signal.aborted || isClosed) return []
      const taken = lanes.take(max)
      if (taken.length > 0) return taken
      const options = { max, signal, waitMs: Math.max(0, until - clock.now()) }
      const { came, isWoken } = await wake.during(options, (ends) =>
        inner.receive({ ...options, signal: ends }),
      )
      if (came.length > 0) lanes.add(came)
      // Nothing more comes: the time is over, or the subscription below was closed.
      else if (!isWoken) return signal.aborted || isClosed ? [] : lanes.take(max)
    }
  }
  /** The timer alone says that the time is over: a clock that was set back meanwhile would keep the lane waiting. */
  const runIn = (ms: number, letRun: () => void): void => {
    const cancel = clock.after(ms, () => {
      timers.delete(cancel)
      letRun()
      wake.wake()
    })
    timers.add(cancel)
  }
  const holdOne = ({ delivery, ...release }: Released): Settled => {
    if (release.counted || release.attempt !== undefined) return invalid
    const { claim } = delivery
    const lane = lanes.of(claim)
    const running = lane?.running(delivery)
    if (lane === undefined || running === undefined || claim.lost.aborted) return lost
    const letRun = lane.hold(handedOutAgain(running))
    lanes.regulate(claim)
    if (release.delayMs > 0) runIn(release.delayMs, letRun)
    else {
      letRun()
      wake.wake()
    }
    return settled
  }
  const endAll = async (batch: readonly Settlement[]): Promise<readonly Settled[]> => {
    if (batch.length === 0) return []
    const outcomes = await inner.settle(batch)
    const ended = batch.filter((_, i) => isGone(outcomes[i] ?? lost))
    for (const { delivery } of ended) {
      lanes.of(delivery.claim)?.end(delivery)
      lanes.regulate(delivery.claim)
    }
    if (ended.length > 0) wake.wake()
    return outcomes
  }
  return {
    ...inner,
    receive,
    settle: async (batch) => {
      const releases = batch.filter((one): one is Released => one.as === 'released')
      const ends = batch.filter((one) => one.as !== 'released')
      const held = releases.map(holdOne)
      const ended = await endAll(ends)
      const outcomes = new Map<Settlement, Settled | undefined>([
        ...releases.map((one, i) => [one, held[i]] as const),
        ...ends.map((one, i) => [one, ended[i]] as const),
      ])
      return batch.map((one) => outcomes.get(one) ?? lost)
    },
    close: async () => {
      isClosed = true
      for (const cancel of timers) cancel()
      await inner.close()
      wake.wake()
    },
  }
}

const invalid: Settled = {
  ok: false,
  fault: { code: 'invalid', retryable: false, outcome: 'notApplied' },
}

interface HeldLanes {
  add(deliveries: readonly Delivery[]): void
  of(claim: Claim): HeldLane | undefined
  take(max: number): readonly Delivery[]
  /** Pauses a lane that is full, and lets it go on when it no longer is. */
  regulate(claim: Claim): void
}

function heldLanes({ pauseLane }: Subscription): HeldLanes {
  const lanes = new Map<Claim, HeldLane>()
  const paused = new Map<string, Claim>()
  const regulate = (claim: Claim): void => {
    const lane = lanes.get(claim)
    if (lane === undefined) return
    const isFull = lane.isFull() && !claim.lost.aborted
    if (isFull === paused.has(lane.name)) return
    if (isFull) paused.set(lane.name, claim)
    else paused.delete(lane.name)
    pauseLane?.(lane.name, isFull)
  }
  return {
    of: (claim) => lanes.get(claim),
    regulate,
    add: (deliveries) => {
      for (const [claim, some] of Map.groupBy(deliveries, (one) => one.claim)) {
        const name = some[0]?.lane ?? ''
        const lane = lanes.get(claim) ?? heldLane(claim, name)
        lanes.set(claim, lane)
        lane.add(some)
        regulate(claim)
      }
    },
    take: (max) => {
      const taken: Delivery[] = []
      for (const [claim, lane] of lanes) {
        if (taken.length < max && !claim.lost.aborted) taken.push(...lane.take(max - taken.length))
        regulate(claim)
        if (claim.lost.aborted) lanes.delete(claim)
      }
      return taken
    },
  }
}
