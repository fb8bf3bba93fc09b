import type { Envelope, RememberedKey } from '../model/envelope.ts'
import type { Row } from '../sql/executor.ts'
import { type Share, shareOf } from '../transport/fair-share.ts'
import type { FailedRow } from './handover.ts'
import type { OutboxRow, RelayFailure } from './outbox.ts'

/** Debezium's outbox event router reads a type; all rows are of this one. */
export const ROW_TYPE = 'message'

/** A row as a relay claimed it. */
export interface ClaimedRow extends OutboxRow {
  /** Its place in the table; text, because Postgres' is wider than a number. */
  readonly seq: string
}

/** What the table keeps of an envelope, beside id, body and priority. */
export interface EnvelopeColumns {
  /** Debezium's key: what belongs together. */
  readonly aggregateId: string
  readonly headers: string
  readonly idempotencyKey: string | null
  readonly orderingKey: string | null
  readonly delayMs: number | null
  readonly readyAt: number | null
  readonly remember: string | null
  /** The fair key and its weight. */
  readonly share: string | null
}

export function columnsOf(envelope: Envelope): EnvelopeColumns {
  const { id, headers, orderingKey, idempotencyKey, delayMs, readyAt, remember = [] } = envelope
  return {
    aggregateId: orderingKey ?? id,
    headers: JSON.stringify(headers),
    idempotencyKey: idempotencyKey ?? null,
    orderingKey: orderingKey ?? null,
    delayMs: delayMs ?? null,
    readyAt: readyAt ?? null,
    remember: remember.length === 0 ? null : JSON.stringify(remember),
    share: envelope.fairKey === undefined ? null : JSON.stringify(shareOf(envelope)),
  }
}

/** `waited_ms` is how long the row has been there, by the clock of its database: part of the delay is over. */
export function claimedRowOf(row: Row): ClaimedRow {
  const { payload, idempotency_key, ordering_key, delay_ms, ready_at, remember } = row
  const envelope: Envelope = {
    id: String(row.id),
    body: payload instanceof Uint8Array ? payload : new Uint8Array(0),
    headers: JSON.parse(String(row.headers)),
    priority: Number(row.priority),
    ...(typeof idempotency_key === 'string' ? { idempotencyKey: idempotency_key } : {}),
    ...(typeof ordering_key === 'string' ? { orderingKey: ordering_key } : {}),
    ...(isNumber(delay_ms) ? { delayMs: leftOf(delay_ms, Number(row.waited_ms)) } : {}),
    ...(isNumber(ready_at) ? { readyAt: Number(ready_at) } : {}),
    ...(typeof remember === 'string' ? { remember: rememberedKeys(remember) } : {}),
    ...(typeof row.share === 'string' ? storedShare(row.share) : {}),
  }
  return {
    seq: String(row.seq),
    queue: String(row.aggregatetype),
    envelope,
    tries: Number(row.tries),
  }
}

function isNumber(value: unknown): boolean {
  return value !== null && value !== undefined
}

function leftOf(delayMs: unknown, waitedMs: number): number {
  return Math.max(0, Math.ceil(Number(delayMs) - Math.max(0, waitedMs)))
}

function storedShare(text: string): Share {
  const share: Share = JSON.parse(text)
  return shareOf(share)
}

interface StoredKey {
  readonly kind: RememberedKey['kind']
  readonly key: string
  readonly fingerprint?: string
  readonly windowMs: number
}

/** JSON leaves out what is undefined; an absent fingerprint means that the payload is ignored. */
function rememberedKeys(text: string): readonly RememberedKey[] {
  const stored: readonly StoredKey[] = JSON.parse(text)
  return stored.map(({ kind, key, fingerprint, windowMs }) => ({
    kind,
    key,
    fingerprint,
    windowMs,
  }))
}

export function failureOf({ row, fault }: FailedRow<ClaimedRow>, retryInMs: number): RelayFailure {
  return {
    queue: row.queue,
    messageId: row.envelope.id,
    tries: row.tries + 1,
    retryInMs,
    fault,
  }
}
