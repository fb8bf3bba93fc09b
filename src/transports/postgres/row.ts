import type { DeadLetter } from '../../model/dead-letter.ts'
import type { Envelope } from '../../model/envelope.ts'
import {
  type AttemptHistory,
  type AttemptRecord,
  errorClassOf,
  freshHistory,
  saturated,
} from '../../model/history.ts'
import type { Row } from '../../sql/executor.ts'
import type { Share } from '../../transport/fair-share.ts'

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})
const noBytes = new Uint8Array(0)

/** Empty headers are by far the most common and cost nothing here. */
export function headersText(headers: Readonly<Record<string, string>>): string | null {
  for (const _ in headers) return JSON.stringify(headers)
  return null
}

export function recordsText(records: readonly AttemptRecord[]): string | null {
  return records.length === 0 ? null : JSON.stringify(records)
}

export function envelopeOf(row: Row): Envelope {
  const { idempotency_key, ordering_key, headers, body } = row
  return {
    id: String(row.id),
    body: body instanceof Uint8Array ? body : noBytes,
    headers: typeof headers === 'string' ? JSON.parse(headers) : noHeaders,
    priority: Number(row.priority),
    ...(typeof idempotency_key === 'string' ? { idempotencyKey: idempotency_key } : undefined),
    ...(typeof ordering_key === 'string' ? { orderingKey: ordering_key } : undefined),
    ...(typeof row.fair_key === 'string' ? shareIn(row) : undefined),
  }
}

function shareIn({ fair_key, fair_weight }: Row): Share {
  const fairKey = String(fair_key)
  return fair_weight === null ? { fairKey } : { fairKey, fairWeight: Number(fair_weight) }
}

export function historyOf(row: Row): AttemptHistory {
  const { counted, redrives, records, throttled_since } = row
  const untouched = counted === 0 && redrives === 0 && throttled_since === null && records === null
  if (untouched) return freshHistory
  return {
    counted: saturated(Number(counted)),
    crashes: saturated(Number(row.crashes)),
    throttledSince: throttled_since === null ? undefined : Number(throttled_since),
    records: typeof records === 'string' ? JSON.parse(records) : [],
    redrives: saturated(Number(redrives)),
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
    sentAt: momentOf(row.sent_at),
    deadAt: momentOf(row.dead_at),
  }
}

/** Moments are stored whole in ms; a double in seconds comes back a little beside. */
export function momentOf(value: unknown): number {
  return Math.round(Number(value))
}

/** Text that Postgres takes: NUL and half characters become U+FFFD. For what people read, never for keys. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}
