import {
  type Dead,
  type Delivery,
  type Released,
  type Settled,
  type Settlement,
  settled,
} from '../../model/delivery.ts'
import { saturated } from '../../model/history.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { prepared } from '../../sql/sqlite-handle.ts'
import { DELAY_MAX_MS } from '../../transport/keeps-all.ts'
import { lost } from '../../transport/outcomes.ts'
import { givenBack, lastHistory, untouched } from '../../transport/settling.ts'
import { givePlaces } from './fair-places.ts'
import { type Held, heldOf } from './held.ts'
import { advance, halt } from './keys.ts'
import { recordsText } from './row.ts'
import { ACK, ADD_TO_TOTAL, BURY, RELEASE, RENEW } from './statements.ts'

/** Ends deliveries inside the open transaction of this handle; a lease that ran out is lost, taken by another or not. */
export function settleBatch(
  handle: SqliteHandle,
  batch: readonly Settlement[],
  now: number,
): readonly Settled[] {
  const gone = new Map<number, number>()
  const outcomes = batch.map((settlement) => {
    const held = heldOf(settlement.delivery)
    if (!held) return lost
    if (settlement.as === 'released') return release(handle, held, settlement, now)
    if (settlement.as === 'dead' && !bury(handle, held, settlement, now)) return lost
    if (!changed(handle, ACK, ...claimOf(held, now))) return lost
    keyGoesOn(handle, held, settlement, now)
    gone.set(held.queueId, (gone.get(held.queueId) ?? 0) + 1)
    return settled
  })
  for (const [queueId, count] of gone) prepared(handle, ADD_TO_TOTAL).run(-count, queueId)
  sharedOut(handle, batch)
  return outcomes
}

/** What was given back, or moved up in the order of its key. */
function sharedOut(handle: SqliteHandle, batch: readonly { readonly delivery: Delivery }[]): void {
  const queues = new Set<number>()
  for (const { delivery } of batch) {
    const held = delivery.envelope.fairKey === undefined ? undefined : heldOf(delivery)
    if (held !== undefined) queues.add(held.queueId)
  }
  for (const queueId of queues) givePlaces(handle, queueId)
}

/** The message has ended: the next one of its key stands in line, unless its death halts the key. */
function keyGoesOn(handle: SqliteHandle, held: Held, { as }: Settlement, now: number): void {
  const { orderingKey: key, id } = held.delivery.envelope
  if (key === undefined) return
  const queueKey = { queueId: held.queueId, key }
  if (as === 'dead') halt(handle, queueKey, id, now)
  advance(handle, queueKey, now)
}

export function renewBatch(
  handle: SqliteHandle,
  batch: readonly Delivery[],
  leaseMs: number,
  now: number,
): readonly Settled[] {
  return batch.map((delivery) => {
    const held = heldOf(delivery)
    if (!held || !changed(handle, RENEW, now + leaseMs, ...claimOf(held, now))) return lost
    return settled
  })
}

/** Gives back, as it was, what a closing subscription still holds. */
export function giveBack(handle: SqliteHandle, all: readonly Held[], now: number): void {
  for (const held of all) {
    release(handle, held, untouched(held.delivery), now)
  }
  sharedOut(handle, all)
}

function release(handle: SqliteHandle, held: Held, settlement: Released, now: number): Settled {
  const { history, alone, delayMs } = givenBack(held.delivery, settlement, DELAY_MAX_MS)
  const kept = changed(
    handle,
    RELEASE,
    delayMs > 0 ? 1 : alone ? 3 : 0,
    now + delayMs,
    alone ? 1 : 0,
    saturated(history.counted),
    history.throttledSince ?? null,
    recordsText(history.records),
    ...claimOf(held, now),
  )
  return kept ? settled : lost
}

function bury(handle: SqliteHandle, held: Held, settlement: Dead, now: number): boolean {
  const { errorClass, reason } = settlement
  const history = lastHistory(held.delivery, settlement)
  return changed(
    handle,
    BURY,
    now,
    errorClass,
    reason,
    saturated(history.counted),
    history.throttledSince ?? null,
    recordsText(history.records),
    ...claimOf(held, now),
  )
}

function claimOf(held: Held, now: number): readonly [number, number, number, number] {
  return [held.seq, held.queueId, held.fence, now]
}

function changed(handle: SqliteHandle, sql: string, ...params: readonly unknown[]): boolean {
  return Number(prepared(handle, sql).run(...params).changes) > 0
}
