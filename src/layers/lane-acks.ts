import type { Acked, Claim, Delivery, Settled } from '../model/delivery.ts'
import { type OffsetLedger, openLedger } from '../transport/offset-ledger.ts'
import { lost } from '../transport/outcomes.ts'
import type { Subscription } from '../transport/transport.ts'

/** The ledgers of the lanes that are ours, and the commits that follow from them. */
export interface LaneAcks {
  /** Notes that it came; false when it was done before. */
  isNew(delivery: Delivery): boolean
  /** Came and is not done. */
  isOpen(delivery: Delivery): boolean
  /** Its handler is done, and the commit that says so was not confirmed: an ack may be repeated, a release comes too late. */
  isUnconfirmed(delivery: Delivery): boolean
  /** One outcome per item. One commit for each lane, so all of a lane share its outcome. */
  ack(batch: readonly Acked[]): Promise<readonly Settled[]>
}

/** One lane while it is ours. */
interface Ledgered {
  readonly ledger: OffsetLedger
  readonly unconfirmed: Set<bigint>
}

export function laneAcks(commit: Subscription['settle']): LaneAcks {
  const lanes = new WeakMap<Claim, Ledgered>()
  const laneOf = (claim: Claim): Ledgered => {
    const known = lanes.get(claim)
    if (known !== undefined) return known
    const made = { ledger: openLedger(claim.note), unconfirmed: new Set<bigint>() }
    lanes.set(claim, made)
    return made
  }
  return {
    isNew: ({ claim, position = -1n }) => laneOf(claim).ledger.take(position),
    isOpen: ({ claim, position = -1n }) => laneOf(claim).ledger.isOpen(position),
    isUnconfirmed: ({ claim, position = -1n }) => laneOf(claim).unconfirmed.has(position),
    ack: async (batch) => {
      const last = new Map<Claim, Delivery>()
      for (const { delivery } of batch) {
        const { ledger, unconfirmed } = laneOf(delivery.claim)
        ledger.done(delivery.position ?? -1n)
        unconfirmed.add(delivery.position ?? -1n)
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
