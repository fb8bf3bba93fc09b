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
import { keysOf, lockKeys } from './order.ts'
import { recordsText, storableText } from './row.ts'
import { query, type Store } from './store.ts'

export interface Settling {
  readonly store: Store
  readonly hand: Hand
  readonly queueId: number
}

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
    const done = settlement.as === 'released' ? released : ended
    if (held && done.delete(held.seq)) {
      hand.drop(held)
      return settled
    }
    if (held) {
      hand.drop(held)
      held.lose()
    }
    return lost
  })
}

/** Several ordering keys go on together: they are locked first, in one order, as by whoever sends to them. */
async function endAll(settling: Settling, batch: readonly Settlement[]): Promise<Set<number>> {
  const { store, hand, queueId } = settling
  const acked = heldIn(batch, 'acked')
  const dead = batch.filter(isDead)
  const keys = keysOf(batch.map(({ delivery }) => delivery.envelope))
  if (keys.length < 2) {
    const execute: Execute = (sql, params) => query(store, sql, params)
    const [acks, deaths] = await Promise.all([
      ackAll(execute, store, hand, acked),
      buryAll(execute, store, dead),
    ])
    return deaths.size === 0 ? acks : new Set([...acks, ...deaths])
  }
  return await store.pool.begin(async (executor) => {
    await lockKeys(store, executor, queueId, { keys, before: 'end' })
    const acks = await ackAll(executor.execute, store, hand, acked)
    return new Set([...acks, ...(await buryAll(executor.execute, store, dead))])
  })
}

type Execute = PgExecutor['execute']

function isReleased(settlement: Settlement): settlement is Released {
  return settlement.as === 'released'
}

function isDead(settlement: Settlement): settlement is Dead {
  return settlement.as === 'dead'
}

function heldIn(batch: readonly Settlement[], as: Settlement['as']): readonly Held[] {
  return heldOfAll(
    batch.filter((settlement) => settlement.as === as).map(({ delivery }) => delivery),
  )
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
  all: readonly Held[],
): Promise<Set<number>> {
  if (all.length === 0) return new Set()
  const ended = numberArray(hand.endedBy(all))
  return seqsOf(await execute(sql.ACK, [...claimsOf(all), ended]))
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
