import type { Acked, Claim, Delivery, Settled } from '../model/delivery.ts'
import { isFullNote, type OffsetLedger, openLedger } from '../transport/offset-ledger.ts'
import { lost } from '../transport/outcomes.ts'
import type { Subscription } from '../transport/transport.ts'
import { WAITING_MAX } from './held-lane.ts'

/** The ledgers of the lanes that are ours, and the commits that follow from them. */
export interface LaneAcks {
  /** Notes that it came; undefined when it was done before. Says which of them were certainly never handed out. */
  take(delivery: Delivery): Delivery | undefined
  /** As it came, whatever layers above made of it; undefined when it never came, or is done. */
  open(delivery: Delivery): Delivery | undefined
  /** Its handler is done, and the commit that says so was not confirmed: an ack may be repeated, a release comes too late. */
  isUnconfirmed(delivery: Delivery): boolean
  /** One outcome per item. One commit for each lane, so all of a lane share its outcome. */
  ack(batch: readonly Acked[]): Promise<readonly Settled[]>
}

/** One lane while it is ours. */
interface Ledgered {
  readonly ledger: OffsetLedger
  readonly unconfirmed: Set<bigint>
  readonly inHand: Map<bigint, Delivery>
  /** So many more may have been in the hands of the holder before. */
  suspects: number
}

/** A holder before may have had more room than this one: workers are deployed with another concurrency. */
const SUSPECTS_MIN = 500

/**
 * How many of a lane's first messages a holder that vanished may have had in hand: what it ran and settled, what it had asked
 * for in one receive, and what waited for its key above (`hold`). All of it was taken, none was done, and whatever is done
 * is left out, so it comes first.
 */
function suspectsMax({ note = '' }: Claim, maxInFlight: number): number {
  if (isFullNote(note)) return Number.POSITIVE_INFINITY
  return Math.max(SUSPECTS_MIN, WAITING_MAX + 2 * maxInFlight)
}

/** @param maxInFlight asked for each lane that comes */
export function laneAcks(commit: Subscription['settle'], maxInFlight: () => number): LaneAcks {
  const lanes = new WeakMap<Claim, Ledgered>()
  const laneOf = (claim: Claim): Ledgered => {
    const known = lanes.get(claim)
    if (known !== undefined) return known
    const made: Ledgered = {
      ledger: openLedger(claim.note),
      unconfirmed: new Set(),
      inHand: new Map(),
      suspects: suspectsMax(claim, maxInFlight()),
    }
    lanes.set(claim, made)
    return made
  }
  return {
    take: (delivery) => {
      const { claim, position = -1n } = delivery
      const lane = laneOf(claim)
      if (!lane.ledger.take(position)) return undefined
      const isKnown = delivery.deliveries === 1
      const isSuspect = lane.suspects > 0 && !isKnown
      if (isSuspect) lane.suspects -= 1
      const taken = isSuspect || isKnown ? delivery : { ...delivery, deliveries: 1 }
      lane.inHand.set(position, taken)
      return taken
    },
    open: ({ claim, position = -1n }) => laneOf(claim).inHand.get(position),
    isUnconfirmed: ({ claim, position = -1n }) => laneOf(claim).unconfirmed.has(position),
    ack: async (batch) => {
      const last = new Map<Claim, Delivery>()
      for (const { delivery } of batch) {
        const { ledger, unconfirmed, inHand } = laneOf(delivery.claim)
        const { position = -1n } = delivery
        ledger.done(position)
        inHand.delete(position)
        unconfirmed.add(position)
        last.set(delivery.claim, delivery)
      }
      // Nothing is awaited between ledger and commit: an older position never overtakes a newer one.
      const commits = [...last.values()].map((delivery): Acked => {
        const { ledger } = laneOf(delivery.claim)
        const upTo = { position: ledger.position() ?? 0n, note: ledger.note() }
        return { as: 'acked', delivery, upTo }
      })
      const outcomes = commits.length === 0 ? [] : await commit(commits)
      const ofLane = new Map([...last.keys()].map((claim, i) => [claim, outcomes[i]]))
      return batch.map(({ delivery: { claim, position = -1n } }) => {
        const outcome = ofLane.get(claim) ?? lost
        if (outcome.ok) laneOf(claim).unconfirmed.delete(position)
        return outcome
      })
    },
  }
}
