import type { Envelope } from '../../model/envelope.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { prepared } from '../../sql/sqlite-handle.ts'
import { headersText } from './row.ts'
import {
  INSERT_ALIKE,
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
  /** Whether this client binds numbered parameters; better-sqlite3 cannot. */
  readonly numbered: boolean
}

/** False when the id is stored already. */
export function insertOne(inserting: Inserting, envelope: Envelope): boolean {
  const values: unknown[] = []
  pushRow(values, inserting, envelope)
  return Number(prepared(inserting.handle, INSERT_MESSAGE).run(...values).changes) > 0
}

/** `INSERT_ROWS` of them from this one on: all, or none when one of the ids is stored already. */
export function insertMany(
  inserting: Inserting,
  envelopes: readonly Envelope[],
  from: number,
): boolean {
  const { handle } = inserting
  const alike = areAlike(inserting, envelopes, from)
  const values = alike
    ? valuesOfAlike(inserting, envelopes, from)
    : valuesOfAll(inserting, envelopes, from)
  const statement = prepared(handle, alike ? INSERT_ALIKE : INSERT_MESSAGES)
  const changes = Number(statement.run(...values).changes)
  if (changes === INSERT_ROWS) return true
  if (changes > 0) prepared(handle, REMOVE_NEWEST).run(changes)
  return false
}

/** Those of one `sendBatch` are, and single ones without options. */
function areAlike({ numbered }: Inserting, envelopes: readonly Envelope[], from: number): boolean {
  if (!numbered) return false
  const first = envelopes[from] as Envelope
  for (let i = from + 1; i < from + INSERT_ROWS; i += 1) {
    if (!isAlike(first, envelopes[i] as Envelope)) return false
  }
  return first.idempotencyKey === undefined
}

function isAlike(a: Envelope, b: Envelope): boolean {
  return (
    a.headers === b.headers &&
    a.priority === b.priority &&
    a.delayMs === b.delayMs &&
    a.readyAt === b.readyAt &&
    a.orderingKey === b.orderingKey &&
    b.idempotencyKey === undefined
  )
}

function valuesOfAlike(
  { queue, now }: Inserting,
  envelopes: readonly Envelope[],
  from: number,
): readonly unknown[] {
  const first = envelopes[from] as Envelope
  const readyAt = readyAtOf(first, now)
  const state = readyAt > now ? SCHEDULED : READY
  const { priority, orderingKey = null } = first
  const headers = headersText(first.headers)
  const values: unknown[] = [queue.id, state, priority, readyAt, now, orderingKey, headers]
  for (let i = from; i < from + INSERT_ROWS; i += 1) {
    const envelope = envelopes[i] as Envelope
    values.push(envelope.id, envelope.body)
  }
  return values
}

function valuesOfAll(
  inserting: Inserting,
  envelopes: readonly Envelope[],
  from: number,
): readonly unknown[] {
  const values: unknown[] = []
  for (let i = from; i < from + INSERT_ROWS; i += 1) {
    pushRow(values, inserting, envelopes[i] as Envelope)
  }
  return values
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
