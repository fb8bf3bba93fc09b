import type { DeadLetter } from '../../model/dead-letter.ts'
import type { Envelope } from '../../model/envelope.ts'
import {
  type AttemptHistory,
  type AttemptRecord,
  errorClassOf,
  freshHistory,
} from '../../model/history.ts'
import type { Row } from '../../sql/executor.ts'
import { asNumber } from '../../sql/sqlite-handle.ts'
import type { Share } from '../../transport/fair-share.ts'

const NO_HEADERS = '{}'
const NO_RECORDS = '[]'
const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** Empty headers are by far the most common and cost nothing here. */
export function headersText(headers: Readonly<Record<string, string>>): string {
  for (const _ in headers) return JSON.stringify(headers)
  return NO_HEADERS
}

export function recordsText(records: readonly AttemptRecord[]): string {
  return records.length === 0 ? NO_RECORDS : JSON.stringify(records)
}

export function envelopeOf(row: Row): Envelope {
  const { idempotency_key, ordering_key, headers } = row
  return {
    id: String(row.id),
    body: row.body instanceof Uint8Array ? row.body : new Uint8Array(0),
    headers: headers === NO_HEADERS ? noHeaders : JSON.parse(String(headers)),
    priority: asNumber(row.priority),
    ...(typeof idempotency_key === 'string' ? { idempotencyKey: idempotency_key } : undefined),
    ...(typeof ordering_key === 'string' ? { orderingKey: ordering_key } : undefined),
    ...(typeof row.fair_key === 'string' ? shareIn(row) : undefined),
  }
}

function shareIn({ fair_key, fair_weight }: Row): Share {
  const fairKey = String(fair_key)
  return fair_weight === null ? { fairKey } : { fairKey, fairWeight: asNumber(fair_weight) }
}

export function historyOf(row: Row): AttemptHistory {
  const { counted, crashes, redrives, records, throttled_since } = row
  const throttledSince = throttled_since === null ? undefined : asNumber(throttled_since)
  const untouched = counted === 0 && redrives === 0 && throttledSince === undefined
  if (untouched && records === NO_RECORDS) return freshHistory
  return {
    counted: asNumber(counted),
    crashes: asNumber(crashes),
    throttledSince,
    records: records === NO_RECORDS ? [] : JSON.parse(String(records)),
    redrives: asNumber(redrives),
  }
}

export function deadLetterOf(row: Row, queue: string): DeadLetter {
  return {
    envelope: envelopeOf(row),
    queue,
    owner: String(row.owner),
    errorClass: errorClassOf(row.error_class),
    reason: String(row.reason),
    history: historyOf(row),
    sentAt: asNumber(row.sent_at),
    deadAt: asNumber(row.dead_at),
  }
}
