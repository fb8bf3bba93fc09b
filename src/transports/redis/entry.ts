import { isUtf8 } from 'node:buffer'
import type { DeadLetter } from '../../model/dead-letter.ts'
import type { Envelope } from '../../model/envelope.ts'
import {
  type AttemptHistory,
  type AttemptRecord,
  errorClassOf,
  freshHistory,
  saturated,
} from '../../model/history.ts'
import type { Reply } from '../../redis/wire.ts'
import type { Share } from '../../transport/fair-share.ts'

/** What an entry of the stream says, whoever wrote it. */
export interface Entry {
  readonly entryId: string
  readonly envelope: Envelope
  readonly sentAt: number
  /** Handings out before this one. */
  readonly deliveries: number
  readonly history: AttemptHistory
}

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** The field of a priority above 0, a digit: what other producers write beside a body stays theirs, whatever they call it. */
export const PRIORITY = 'millrace-priority'
/** Whose share it takes, and the weight of it where it is not 1. */
export const FAIR_KEY = 'millrace-fair-key'
export const FAIR_WEIGHT = 'millrace-fair-weight'

/** The fields of a message as it is sent: `id` first, then `body`, then its priority and its share, then what few messages have. */
export function fieldsOf(envelope: Envelope): (string | Buffer)[] {
  const { id, body, headers, priority, fairKey, fairWeight } = envelope
  const { idempotencyKey, orderingKey } = envelope
  const fields: (string | Buffer)[] = ['id', id, 'body', argumentOf(body)]
  if (priority > 0) fields.push(PRIORITY, String(priority))
  if (fairKey !== undefined) fields.push(FAIR_KEY, fairKey)
  if (fairWeight !== undefined) fields.push(FAIR_WEIGHT, String(fairWeight))
  for (const _ in headers) {
    fields.push('headers', JSON.stringify(headers))
    break
  }
  if (idempotencyKey !== undefined) fields.push('idempotencyKey', idempotencyKey)
  if (orderingKey !== undefined) fields.push('orderingKey', orderingKey)
  return fields
}

/** Beyond it the copy is not worth it. */
const TEXT_MAX_BYTES = 4_096

/**
 * A body as an argument: a text where it is one, byte for byte. The client joins texts, and writes each Buffer by itself: a message of
 * a bulk of 1,000 costs 5.9 µs of Node's time so, 6.6 as a Buffer.
 */
export function argumentOf(body: Uint8Array): string | Buffer {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return bytes.length <= TEXT_MAX_BYTES && isUtf8(bytes) ? bytes.toString() : bytes
}

export interface State {
  readonly sentAt: number
  readonly deliveries: number
  readonly history: AttemptHistory
  readonly alone: boolean
}

/** What is kept beside a message once it was handed out. */
export function stateFields({ sentAt, deliveries, history, alone }: State): readonly string[] {
  const { counted, crashes, throttledSince, redrives, records } = history
  const fields = ['at', whole(sentAt), 'deliveries', whole(deliveries)]
  if (counted > 0) fields.push('counted', whole(counted))
  if (crashes > 0) fields.push('crashes', whole(crashes))
  if (throttledSince !== undefined && Number.isFinite(throttledSince)) {
    fields.push('throttledSince', whole(throttledSince))
  }
  if (redrives > 0) fields.push('redrives', whole(redrives))
  if (records.length > 0) fields.push('records', JSON.stringify(records))
  if (alone) fields.push('alone', '1')
  return fields
}

function whole(value: number): string {
  return String(Math.round(saturated(value)))
}

/** An entry with nothing but id and body, as most are. */
export function plainEntry(entryId: string, id: string, body: Buffer): Entry {
  return {
    entryId,
    envelope: { id, body, headers: noHeaders, priority: 0 },
    sentAt: momentOf(entryId),
    deliveries: 0,
    history: freshHistory,
  }
}

/** Any entry. Without `body` it is another producer's: named by its entry id, and all its fields are the payload. */
export function entryOf(entryId: string, reply: Reply): Entry {
  const fields = namedFields(reply)
  const body = fields.get('body')
  if (body === undefined) return plainEntry(entryId, entryId, payloadOf(fields))
  const text = (name: string): string | undefined => fields.get(name)?.toString()
  const idempotencyKey = text('idempotencyKey')
  const orderingKey = text('orderingKey')
  const envelope: Envelope = {
    id: text('id') ?? entryId,
    body,
    headers: headersOf(text('headers')),
    priority: priorityOf(text(PRIORITY)),
    ...(idempotencyKey === undefined ? undefined : { idempotencyKey }),
    ...(orderingKey === undefined ? undefined : { orderingKey }),
    ...shareIn(text(FAIR_KEY), finite(text(FAIR_WEIGHT))),
  }
  return {
    entryId,
    envelope,
    sentAt: finite(text('at')) ?? momentOf(entryId),
    deliveries: finite(text('deliveries')) ?? 0,
    history: historyOf(text),
  }
}

function shareIn(fairKey: string | undefined, fairWeight: number | undefined): Share {
  if (fairKey === undefined) return {}
  return fairWeight === undefined ? { fairKey } : { fairKey, fairWeight }
}

function priorityOf(text = '0'): number {
  return /^\d$/.test(text) ? Number(text) : 0
}

/** Another producer may call a field of its own as we call one of ours. */
function finite(text: string | undefined): number | undefined {
  const number = text === undefined || text === '' ? Number.NaN : Number(text)
  return Number.isFinite(number) ? number : undefined
}

function historyOf(text: (name: string) => string | undefined): AttemptHistory {
  const count = (name: string): number => finite(text(name)) ?? 0
  const records = text('records')
  return {
    counted: count('counted'),
    crashes: count('crashes'),
    throttledSince: finite(text('throttledSince')),
    records: records === undefined ? [] : recordsOf(records),
    redrives: count('redrives'),
  }
}

function recordsOf(text: string): readonly AttemptRecord[] {
  const parsed: unknown = parse(text)
  return Array.isArray(parsed) ? parsed : []
}

function headersOf(text: string | undefined): Readonly<Record<string, string>> {
  const parsed: unknown = text === undefined ? undefined : parse(text)
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return noHeaders
  return Object.fromEntries(Object.entries(parsed).map(([name, value]) => [name, String(value)]))
}

/** Undefined for what is no JSON: another producer's mistake must not stop the queue. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** One JSON object of texts; the scripts make the same of it when the entry is given back. */
function payloadOf(fields: ReadonlyMap<string, Buffer>): Buffer {
  return Buffer.from(JSON.stringify(Object.fromEntries([...fields].map(([k, v]) => [k, `${v}`]))))
}

function namedFields(reply: Reply): ReadonlyMap<string, Buffer> {
  const fields = new Map<string, Buffer>()
  if (!Array.isArray(reply)) return fields
  for (let at = 0; at + 1 < reply.length; at += 2) {
    const value: Reply = reply[at + 1]
    if (Buffer.isBuffer(value)) fields.set(String(reply[at]), value)
  }
  return fields
}

/** An entry id begins with the server's time. */
export function momentOf(entryId: string): number {
  return Number(entryId.slice(0, entryId.indexOf('-')))
}

/** A letter as the shelf keeps it: time of death, class, reason, owner, then the fields. */
export function deadLetterOf(reply: Reply, queue: string): DeadLetter | undefined {
  if (!Array.isArray(reply)) return undefined
  const [deadAt, errorClass, reason, owner, ...fields] = reply
  const { envelope, sentAt, history } = entryOf('0-0', fields)
  return {
    envelope,
    queue,
    owner: String(owner),
    errorClass: errorClassOf(String(errorClass)),
    reason: String(reason),
    history,
    sentAt,
    deadAt: Number(deadAt),
  }
}
