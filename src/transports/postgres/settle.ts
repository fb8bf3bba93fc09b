import {
  type Dead,
  type Delivery,
  type Released,
  type Settled,
  type Settlement,
  settled,
} from '../../model/delivery.ts'
import { saturated } from '../../model/history.ts'
import type { PgExecutor, Row } from '../../sql/executor.ts'
import { numberArray, textArray } from '../../sql/pg-array.ts'
import type { PgCallOptions } from '../../sql/pg-pool.ts'
import { DELAY_MAX_MS } from '../../transport/keeps-all.ts'
import { lost } from '../../transport/outcomes.ts'
import { givenBack, lastHistory } from '../../transport/settling.ts'
import type { Hand } from './hand.ts'
import { type Held, heldOf } from './held.ts'
import { held as heldUp, isLocked } from './locked.ts'
import { keysOf, lockFreeKeys, lockKnownKeys } from './order.ts'
import { recordsText, storableText } from './row.ts'
import { query, type Store } from './store.ts'

export interface Settling {
  readonly store: Store
  readonly hand: Hand
  readonly queueId: number
}

/**
 * How long those that were gathered wait for a key that a transaction of somebody's holds, before they go on without it. Who sends to a
 * key for himself has it for a few ms.
 */
const LOCK_MS = 100

/** Ends deliveries, each kind in one statement. A lease that ran out still counts until somebody took the message. */
export async function settleBatch(
  settling: Settling,
  batch: readonly Settlement[],
): Promise<readonly Settled[]> {
  const { store, hand } = settling
  const [ended, released] = await Promise.all([
    endAll(
      settling,
      batch.filter(({ as }) => as !== 'released'),
    ),
    releaseAll(store, batch.filter(isReleased)),
  ])
  return batch.map((settlement) => {
    const held = heldOf(settlement.delivery)
    const done = settlement.as === 'released' ? released : ended.done
    if (held && done.delete(held.seq)) {
      hand.drop(held)
      return settled
    }
    if (settlement.as !== 'released' && ended.isHeld(settlement)) return heldUp(ended.cause)
    if (held) {
      hand.drop(held)
      held.lose()
    }
    return lost
  })
}

interface Ended {
  /** By seq. */
  readonly done: Set<number>
  /** What it needs is in somebody's transaction: not ended, and still ours. */
  readonly isHeld: (settlement: Settlement) => boolean
  readonly cause?: unknown
}

/** A key that somebody's open transaction holds keeps nobody waiting but its own message. */
async function endAll(settling: Settling, batch: readonly Settlement[]): Promise<Ended> {
  try {
    return { done: await endTogether(settling, batch), isHeld: () => false }
  } catch (cause) {
    if (!isLocked(cause)) throw cause
    return { ...(await endFree(settling, batch)), cause }
  }
}

/** Several ordering keys go on together: they are locked first, in one order, as by whoever sends to them. */
async function endTogether(settling: Settling, batch: readonly Settlement[]): Promise<Set<number>> {
  const { store, queueId } = settling
  const keys = keyed(batch)
  const isDeadWithKey = keys.length > 0 && batch.some(isDead)
  if (keys.length < 2 && !isDeadWithKey) {
    return await endListed(settling, (sql, params) => query(store, sql, params), batch)
  }
  return await store.pool.begin(async (executor) => {
    await lockKnownKeys(store, executor, queueId, { keys, lockMs: LOCK_MS })
    return await endListed(settling, executor.execute, batch)
  })
}

/** Those whose keys can be had now. */
async function endFree(settling: Settling, batch: readonly Settlement[]): Promise<Ended> {
  const { store, queueId } = settling
  try {
    return await store.pool.begin(async (executor) => {
      const heldKeys = await lockFreeKeys(store, executor, queueId, keyed(batch))
      const isHeld = ({ delivery }: Settlement) => heldKeys.has(delivery.envelope.orderingKey ?? '')
      const free = batch.filter((settlement) => !isHeld(settlement))
      return { done: await endListed(settling, executor.execute, free), isHeld }
    })
  } catch (error) {
    // What else it needs is locked: a key without a row yet that somebody is just making, or a claim that is being renewed.
    if (!isLocked(error)) throw error
    return { done: new Set(), isHeld: () => true }
  }
}

function keyed(batch: readonly Settlement[]): readonly string[] {
  return keysOf(batch.map(({ delivery }) => delivery.envelope))
}

async function endListed(
  { store, hand }: Settling,
  execute: Execute,
  batch: readonly Settlement[],
): Promise<Set<number>> {
  const acks = await ackAll(execute, store, hand, batch)
  const deaths = await buryAll(execute, store, batch.filter(isDead))
  return deaths.size === 0 ? acks : new Set([...acks, ...deaths])
}

type Execute = PgExecutor['execute']

function isReleased(settlement: Settlement): settlement is Released {
  return settlement.as === 'released'
}

function isDead(settlement: Settlement): settlement is Dead {
  return settlement.as === 'dead'
}

export function heldOfAll(deliveries: readonly Delivery[]): readonly Held[] {
  return deliveries.map(heldOf).filter((held) => held !== undefined)
}

export function seqsOf(rows: readonly Row[]): Set<number> {
  return new Set(rows.map((row) => Number(row.seq)))
}

/** The first two parameters of every statement about deliveries in hand. */
export function claimsOf(all: readonly Held[]): readonly [string, string] {
  return [numberArray(all.map(({ seq }) => seq)), numberArray(all.map(({ claimId }) => claimId))]
}

async function ackAll(
  execute: Execute,
  { sql }: Store,
  hand: Hand,
  batch: readonly Settlement[],
): Promise<Set<number>> {
  const acked = batch.filter(({ as }) => as === 'acked').map(({ delivery }) => delivery)
  const all = heldOfAll(acked)
  if (all.length === 0) return new Set()
  const ended = numberArray(hand.endedBy(all))
  const lockMs = acked.some(({ envelope }) => envelope.orderingKey) ? String(LOCK_MS) : null
  return seqsOf(await execute(sql.ACK, [...claimsOf(all), ended, lockMs]))
}

async function releaseAll(store: Store, batch: readonly Released[]): Promise<Set<number>> {
  const known = batch.flatMap((settlement) => {
    const held = heldOf(settlement.delivery)
    return held ? [{ held, settlement }] : []
  })
  if (known.length === 0) return new Set()
  return seqsOf(await query(store, store.sql.RELEASE, releaseParams(known)))
}

interface KnownRelease {
  readonly held: Held
  readonly settlement: Pick<Released, 'delayMs' | 'counted' | 'attempt'>
}

function releaseParams(known: readonly KnownRelease[]): readonly unknown[] {
  const rows = known.map(({ held, settlement }) => {
    const kept = givenBack(held.delivery, settlement, DELAY_MAX_MS)
    return { ...kept, state: kept.delayMs > 0 ? 1 : kept.alone ? 3 : 0 }
  })
  return [
    ...claimsOf(known.map(({ held }) => held)),
    numberArray(rows.map(({ state }) => state)),
    numberArray(rows.map(({ delayMs }) => delayMs)),
    textArray(rows.map(({ alone }) => (alone ? 't' : 'f'))),
    numberArray(rows.map(({ history }) => saturated(history.counted))),
    numberArray(rows.map(({ history }) => wholeOf(history.throttledSince))),
    textArray(rows.map(({ history }) => recordsText(history.records))),
  ]
}

async function buryAll(
  execute: Execute,
  { sql }: Store,
  batch: readonly Dead[],
): Promise<Set<number>> {
  const rows = batch.flatMap((settlement) => {
    const held = heldOf(settlement.delivery)
    if (!held) return []
    const { errorClass, reason } = settlement
    return [{ held, errorClass, reason, history: lastHistory(held.delivery, settlement) }]
  })
  if (rows.length === 0) return new Set()
  const params = [
    ...claimsOf(rows.map(({ held }) => held)),
    textArray(rows.map(({ errorClass }) => errorClass)),
    textArray(rows.map(({ reason }) => storableText(reason))),
    numberArray(rows.map(({ history }) => saturated(history.counted))),
    numberArray(rows.map(({ history }) => wholeOf(history.throttledSince))),
    textArray(rows.map(({ history }) => recordsText(history.records))),
  ]
  return seqsOf(await execute(sql.BURY, params))
}

function wholeOf(moment: number | undefined): number | null {
  return moment === undefined || !Number.isFinite(moment) ? null : Math.round(moment)
}

/** Gives back, as it was, what a closing subscription still holds. */
export async function giveBack(
  store: Store,
  all: readonly Held[],
  options: PgCallOptions,
): Promise<void> {
  if (all.length === 0) return
  const known = all.map((held) => ({ held, settlement: { delayMs: 0, counted: false } }))
  await store.pool.query(store.sql.RELEASE, releaseParams(known), options)
}
