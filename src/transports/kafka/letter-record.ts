import type { DeadLetter } from '../../model/dead-letter.ts'
import type { ErrorClass } from '../../model/history.ts'
import { errorClassOf } from '../../model/history.ts'
import { isObject, read } from '../../model/probe.ts'
import type { AuditEntry } from '../../transport/transport.ts'
import { toWire } from '../../transport/wire.ts'
import type { KafkaRecord } from './record-shapes.ts'
import { PREFIX } from './records.ts'

/**
 * How dead letters stand in their compacted topic. A letter's key is its message's id and the moment of its death, so that a
 * removal never meets the letter of a message that has died again meanwhile. Its value is the body, its headers are those of
 * the message and what other languages read (below); all of it, exactly, is in `millrace-dead-letter` as JSON. A removal is
 * a record of the same key without a value. An entry of the audit log has a key of its own, which begins with a space, as no
 * id does.
 */
export const HEADERS = {
  letter: 'millrace-dead-letter',
  deadAt: 'millrace-dead-at',
  errorClass: 'millrace-error-class',
  reason: 'millrace-reason',
  owner: 'millrace-owner',
  removedBy: 'millrace-removed-by',
  audit: 'millrace-audit',
} as const

export interface LetterRecord {
  readonly key: Buffer
  /** Absent: a removal. */
  readonly value?: Buffer
  readonly headers: Map<Buffer, Buffer>
}

/** What a record says, without the body. */
export type Said =
  | {
      readonly kind: 'letter'
      readonly id: string
      readonly deadAt: number
      readonly errorClass: ErrorClass
    }
  | {
      readonly kind: 'removal'
      readonly id: string
      readonly deadAt: number
      readonly token: string
    }
  | {
      readonly kind: 'audit'
      readonly key: string
      readonly token: string
      readonly entry: AuditEntry
      readonly deadAt: number
    }
  | { readonly kind: 'audit removal'; readonly key: string }

/** Of one act on the shelf; a put removes what it takes the place of. */
export const BY_PUT = 'put'

export function letterRecord(letter: DeadLetter): LetterRecord {
  const { envelope, queue, deadAt, errorClass, reason, owner } = letter
  const { body, ...bare } = envelope
  return record(
    keyOf(envelope.id, deadAt),
    {
      ...toWire(queue, envelope, PREFIX),
      [HEADERS.deadAt]: new Date(deadAt).toISOString(),
      [HEADERS.errorClass]: errorClass,
      [HEADERS.reason]: reason,
      [HEADERS.owner]: owner,
      [HEADERS.letter]: JSON.stringify({ ...letter, envelope: bare }),
    },
    Buffer.from(body.buffer, body.byteOffset, body.byteLength),
  )
}

export function removalRecord(id: string, deadAt: number, token: string): LetterRecord {
  return record(keyOf(id, deadAt), { [HEADERS.removedBy]: token })
}

export function auditRecord(entry: AuditEntry, deadAt: number, token: string): LetterRecord {
  const key = ` audit ${entry.at.toString(36).padStart(9, '0')} ${entry.messageId} ${token}`
  return record(key, { [HEADERS.audit]: JSON.stringify({ entry, deadAt, token }) }, EMPTY)
}

export function auditRemovalRecord(key: string): LetterRecord {
  return record(key, {})
}

const EMPTY = Buffer.alloc(0)

function record(
  key: string,
  headers: Readonly<Record<string, string>>,
  value?: Buffer,
): LetterRecord {
  const entries = Object.entries(headers)
  return {
    key: Buffer.from(key),
    ...(value === undefined ? {} : { value }),
    headers: new Map(entries.map(([name, text]) => [Buffer.from(name), Buffer.from(text)])),
  }
}

function keyOf(id: string, deadAt: number): string {
  return `${id} ${deadAt}`
}

/** Undefined for what is none of ours. */
export function said({ key, value, headers }: KafkaRecord): Said | undefined {
  const name = key?.toString() ?? ''
  if (name.startsWith(' '))
    return value === null ? { kind: 'audit removal', key: name } : auditOf(name, headers)
  const [id = '', at = ''] = name.split(' ')
  const deadAt = Number(at)
  if (at === '' || !Number.isSafeInteger(deadAt)) return undefined
  if (value === null) {
    return { kind: 'removal', id, deadAt, token: headerOf(headers, HEADERS.removedBy) ?? '' }
  }
  const errorClass = errorClassOf(headerOf(headers, HEADERS.errorClass))
  return { kind: 'letter', id, deadAt, errorClass }
}

function auditOf(key: string, headers: KafkaRecord['headers']): Said | undefined {
  const said = jsonOf(headers, HEADERS.audit)
  const [entry, deadAt, token] = [read(said, 'entry'), read(said, 'deadAt'), read(said, 'token')]
  if (!isAudit(entry) || typeof deadAt !== 'number' || typeof token !== 'string') return undefined
  return { kind: 'audit', key, entry, deadAt, token }
}

function isAudit(value: unknown): value is AuditEntry {
  const texts = ['act', 'queue', 'messageId', 'actor', 'reason']
  return (
    typeof read(value, 'at') === 'number' &&
    texts.every((name) => typeof read(value, name) === 'string')
  )
}

/** The whole letter; undefined when the record is none. */
export function letterOf({ value, headers }: KafkaRecord): DeadLetter | undefined {
  const letter = jsonOf(headers, HEADERS.letter)
  if (value === null || !isLetter(letter)) return undefined
  const { throttledSince, ...history } = letter.history
  return {
    ...letter,
    envelope: { ...letter.envelope, body: value },
    history: { ...history, throttledSince },
  }
}

/** Of what this file wrote the rest is right, too. */
function isLetter(value: unknown): value is DeadLetter {
  return (
    isObject(read(value, 'envelope')) &&
    Array.isArray(read(read(value, 'history'), 'records')) &&
    typeof read(value, 'deadAt') === 'number'
  )
}

/** Undefined for what somebody else wrote there: one such record must not hide all letters. */
function jsonOf(headers: KafkaRecord['headers'], name: string): unknown {
  try {
    return JSON.parse(headerOf(headers, name) ?? 'null')
  } catch {
    return undefined
  }
}

/** The last of one name, because ours stand behind the sender's. */
function headerOf(headers: KafkaRecord['headers'], name: string): string | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined
}
