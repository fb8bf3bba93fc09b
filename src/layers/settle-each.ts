import type { Acked, Delivery, Released, Settled, Settlement } from '../model/delivery.ts'
import { settled } from '../model/delivery.ts'
import { lost } from '../transport/outcomes.ts'
import type { ReceiveOptions, Subscription, Transport } from '../transport/transport.ts'
import { givenBack, handedOutAgain } from './given-back.ts'
import { laneAcks } from './lane-acks.ts'
import { wakeable } from './wakeable.ts'

/**
 * Settles messages of a log one by one: each lane has a ledger, its unbroken prefix is committed, and what is done beyond it
 * travels in the commit's note, so that the next holder leaves it out. A message that is stuck holds the position and nothing
 * else. Given back at once means handed out again here: a lane has no other reader.
 */
export function settleEach(inner: Transport): Transport {
  return {
    ...inner,
    traits: {
      ...inner.traits,
      settles: 'each',
      release: 'immediate',
      uncountedRelease: true,
      // Several of one key are in hand at once.
      order: 'none',
    },
    subscribe: async (queue, options) =>
      eachSubscription(await inner.subscribe(queue, options), options.maxInFlight),
  }
}

const invalid: Settled = {
  ok: false,
  fault: { code: 'invalid', retryable: false, outcome: 'notApplied' },
}

function eachSubscription(inner: Subscription, maxInFlight: number): Subscription {
  let most = maxInFlight
  const acks = laneAcks(inner.settle, () => most)
  const back = givenBack()
  const wake = wakeable()
  const inHand = (delivery: Delivery): Delivery | undefined =>
    back.has(delivery.claim, delivery.position ?? -1n) ? undefined : acks.open(delivery)

  const receive = async (options: ReceiveOptions): Promise<readonly Delivery[]> => {
    const first = options.signal.aborted ? [] : back.take(options.max)
    if (first.length > 0) return first
    const { came } = await wake.during(options, (signal) => inner.receive({ ...options, signal }))
    const fresh = came.map(acks.take).filter((one) => one !== undefined)
    return fresh.length > 0 || options.signal.aborted ? fresh : back.take(options.max)
  }

  const giveBack = ({ delivery, ...release }: Released): Settled => {
    if (release.delayMs > 0 || release.counted || release.attempt !== undefined) return invalid
    const held = inHand(delivery)
    if (delivery.claim.lost.aborted || held === undefined) return lost
    back.add(handedOutAgain(held))
    wake.wake()
    return settled
  }

  const settle = async (batch: readonly Settlement[]): Promise<readonly Settled[]> => {
    const outcomes = new Map<Settlement, Settled>()
    const accepted: Acked[] = []
    const seen = new Set<string>()
    for (const one of batch) {
      const { lane, position } = one.delivery
      const place = `${position} ${lane}`
      if (one.as === 'released') outcomes.set(one, giveBack(one))
      else if (one.as === 'dead') outcomes.set(one, invalid)
      else if (!seen.has(place) && (inHand(one.delivery) || acks.isUnconfirmed(one.delivery))) {
        accepted.push(one)
        seen.add(place)
      }
    }
    const acked = await acks.ack(accepted)
    for (const [i, one] of accepted.entries()) outcomes.set(one, acked[i] ?? lost)
    return batch.map((one) => outcomes.get(one) ?? lost)
  }

  return {
    ...inner,
    receive,
    settle,
    resize: (next) => {
      most = Math.max(most, next)
      inner.resize(next)
    },
    pauseLane: (lane, paused) => {
      back.pause(lane, paused)
      inner.pauseLane?.(lane, paused)
      if (!paused) wake.wake()
    },
    close: async () => {
      await inner.close()
      wake.wake()
    },
  }
}
