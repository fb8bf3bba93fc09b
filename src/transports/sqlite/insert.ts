import type { Envelope } from '../../model/envelope.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { prepared } from '../../sql/sqlite-handle.ts'
import { isTaken } from './keys.ts'
import { headersText } from './row.ts'
import {
  INSERT_ALIKE,
  INSERT_MANY_ALIKE,
  INSERT_MESSAGE,
  INSERT_MESSAGES,
  INSERT_ROWS,
  REMOVE_NEWEST,
} from './statements.ts'
import type { QueueRow } from './store.ts'

export interface Inserting {
  readonly handle: SqliteHandle
  readonly queue: QueueRow
  readonly now: number
}

/** False when the id is stored already. */
export function insertOne(inserting: Inserting, envelope: Envelope): boolean {
  const { handle, queue } = inserting
  const values: unknown[] = []
  pushRow(values, inserting, envelope)
  values.push(envelope.fairKey ?? null, envelope.fairWeight ?? null)
  const { orderingKey: key } = envelope
  if (key !== undefined && isTaken(handle, { queueId: queue.id, key })) values[STATE_AT] = BEHIND
  return Number(prepared(handle, INSERT_MESSAGE).run(...values).changes) > 0
}

const STATE_AT = 2
const BEHIND = 4

/** `INSERT_ROWS` of them from this one on, none with an ordering key: all, or none when one of the ids is stored already. */
export function insertTen(
  inserting: Inserting,
  envelopes: readonly Envelope[],
  from: number,
): boolean {
  const values: unknown[] = []
  for (const envelope of envelopes.slice(from, from + INSERT_ROWS)) {
    pushRow(values, inserting, envelope)
  }
  return allOrNone(inserting.handle, INSERT_MESSAGES, values, INSERT_ROWS)
}

/** As `insertTen`, of messages that are alike; `rows` is INSERT_ROWS or INSERT_MANY_ROWS. */
export function insertAlike(
  { handle, queue, now }: Inserting,
  envelopes: readonly Envelope[],
  from: number,
  rows: number,
): boolean {
  const alike = envelopes.slice(from, from + rows)
  const [first] = alike
  if (first === undefined) return true
  const readyAt = readyAtOf(first, now)
  const state = readyAt > now ? SCHEDULED : READY
  const headers = headersText(first.headers)
  const values: unknown[] = [queue.id, state, first.priority, readyAt, now, headers]
  for (const envelope of alike) values.push(envelope.id, envelope.body)
  return allOrNone(handle, rows === INSERT_ROWS ? INSERT_ALIKE : INSERT_MANY_ALIKE, values, rows)
}

/** Whether they differ in id and body only, as far as simple ones can: those of one `sendBatch` do, and single ones without options. */
export function areAlike(a: Envelope, b: Envelope): boolean {
  return (
    a.headers === b.headers &&
    a.priority === b.priority &&
    a.delayMs === b.delayMs &&
    a.readyAt === b.readyAt &&
    a.idempotencyKey === undefined &&
    b.idempotencyKey === undefined
  )
}

function allOrNone(
  handle: SqliteHandle,
  sql: string,
  values: readonly unknown[],
  rows: number,
): boolean {
  const changes = Number(prepared(handle, sql).run(...values).changes)
  if (changes === rows) return true
  if (changes > 0) prepared(handle, REMOVE_NEWEST).run(changes)
  return false
}

function pushRow(values: unknown[], { queue, now }: Inserting, envelope: Envelope): void {
  const readyAt = readyAtOf(envelope, now)
  values.push(queue.id, envelope.id, readyAt > now ? SCHEDULED : READY, envelope.priority)
  values.push(readyAt, now, envelope.idempotencyKey ?? null, envelope.orderingKey ?? null)
  values.push(headersText(envelope.headers), envelope.body)
}

/** `state` in the schema. */
const READY = 0
const SCHEDULED = 1

function readyAtOf({ delayMs = 0, readyAt = 0 }: Envelope, now: number): number {
  return Math.max(now, now + delayMs, readyAt)
}
