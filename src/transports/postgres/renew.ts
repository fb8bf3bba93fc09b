import { type Delivery, type Settled, settled } from '../../model/delivery.ts'
import { numberArray } from '../../sql/pg-array.ts'
import { lost } from '../../transport/outcomes.ts'
import type { Hand } from './hand.ts'
import { type Held, heldOf } from './held.ts'
import { claimsOf, heldOfAll, seqsOf } from './settle.ts'
import { query, type Store } from './store.ts'

export interface RenewRequest {
  readonly queueId: number
  readonly leaseMs: number
}

/**
 * Renews the claims that the batch covers, in one statement however many messages it has. Where it covers a part of a
 * claim only, that part moves to a new one.
 */
export async function renewBatch(
  store: Store,
  hand: Hand,
  batch: readonly Delivery[],
  request: RenewRequest,
): Promise<readonly Settled[]> {
  const all = heldOfAll(batch)
  const renewed = new Set(all)
  const whole = all.filter((held) => hand.isWhole(held.claimId, renewed))
  const parts = all.filter((held) => !whole.includes(held))
  const kept = new Set<Held>([
    ...(await renewWhole(store, whole, request)),
    ...(await renewParts(store, hand, parts, request)),
  ])
  return batch.map((delivery) => {
    const held = heldOf(delivery)
    if (held && kept.has(held)) return settled
    if (held) {
      hand.drop(held)
      held.lose()
    }
    return lost
  })
}

async function renewWhole(
  store: Store,
  all: readonly Held[],
  { leaseMs }: RenewRequest,
): Promise<readonly Held[]> {
  if (all.length === 0) return []
  const claimIds = numberArray([...new Set(all.map(({ claimId }) => claimId))])
  const seqs = seqsOf(await query(store, store.sql.RENEW, [...claimsOf(all), claimIds, leaseMs]))
  return all.filter(({ seq }) => seqs.has(seq))
}

async function renewParts(
  store: Store,
  hand: Hand,
  all: readonly Held[],
  { queueId, leaseMs }: RenewRequest,
): Promise<readonly Held[]> {
  if (all.length === 0) return []
  const params = [...claimsOf(all), queueId, store.owner, leaseMs]
  const rows = await query(store, store.sql.RENEW_PART, params)
  const claimBySeq = new Map(rows.map((row) => [Number(row.seq), Number(row.claim_id)]))
  return all.filter((held) => {
    const claimId = claimBySeq.get(held.seq)
    if (claimId === undefined) return false
    hand.move(held, claimId)
    return true
  })
}
