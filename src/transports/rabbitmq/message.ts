import { createHash } from 'node:crypto'
import type { Delivery } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { isId } from '../../model/ids.ts'
import { fromWire, hiddenHeader, setHeader, toWire } from '../../transport/wire.ts'
import type { AmqpMessage } from './amqp-shapes.ts'

/** Of the AMQP protocol binding of CloudEvents 1.0. */
const PREFIX = 'cloudEvents_'
/** The moment of sending, to the millisecond; AMQP's own timestamp has seconds. */
const TIME = `${PREFIX}time`
const SOURCE = `${PREFIX}source`

/** Headers that the broker takes for orders, or writes itself. */
const BROKERS = new Set([
  'CC',
  'BCC',
  'x-death',
  'x-delivery-count',
  'x-acquired-count',
  'x-first-death-exchange',
  'x-first-death-queue',
  'x-first-death-reason',
  'x-last-death-exchange',
  'x-last-death-queue',
  'x-last-death-reason',
])

/** A header that AMQP cannot carry as it is; undefined when there is none. */
export function impossibleHeader(envelope: Envelope): string | undefined {
  return (
    hiddenHeader(envelope, PREFIX) ??
    Object.keys(envelope.headers).find(
      (name) => name === TIME || BROKERS.has(name) || Buffer.byteLength(name) > HEADER_NAME_MAX,
    )
  )
}

/** Bytes; AMQP's short string. */
const HEADER_NAME_MAX = 255

/** The moment of sending, in the two forms that a message carries; the same for a whole batch. */
export interface SendingTime {
  readonly seconds: number
  readonly iso: string
}

export function sendingTime(now: number): SendingTime {
  return { seconds: Math.floor(now / 1_000), iso: new Date(now).toISOString() }
}

export function headersOf(
  queue: string,
  envelope: Envelope,
  { iso }: SendingTime,
): Readonly<Record<string, string>> {
  const headers = toWire(queue, envelope, PREFIX)
  headers[TIME] = iso
  return headers
}

export function contentOf({ body }: Envelope): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

export interface Reading {
  /** Makes an id for a bare message that has none. */
  readonly newId: () => string
  readonly now: number
}

export type Read = Pick<Delivery, 'envelope' | 'idIsPassing' | 'sentAt' | 'deliveries'>

export function readMessage(message: AmqpMessage, { newId, now }: Reading, counts: boolean): Read {
  const { properties, content, fields } = message
  const table = properties.headers ?? {}
  const time = Object.hasOwn(table, TIME) ? textOf(table[TIME]) : undefined
  const texts = textHeaders(table, table[SOURCE] === '/millrace')
  const { id, headers, idempotencyKey, orderingKey } = fromWire(texts, PREFIX)
  const given = id ?? (typeof properties.messageId === 'string' ? properties.messageId : undefined)
  const own = identity(given)
  return {
    ...(own === undefined ? { idIsPassing: true } : {}),
    envelope: {
      id: own ?? newId(),
      body: content,
      headers,
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(orderingKey === undefined ? {} : { orderingKey }),
      priority: 0,
    },
    sentAt: sentAtOf(time, properties.timestamp) ?? now,
    deliveries: counts ? deliveriesOf(properties.headers) : fields.redelivered ? undefined : 1,
  }
}

/** An id that others gave may have any characters; one that cannot be ours is hashed, the same each time. */
function identity(given: string | undefined): string | undefined {
  if (given === undefined || given === '') return undefined
  return isId(given) ? given : `sha256-${createHash('sha256').update(given).digest('hex')}`
}

function sentAtOf(time: string | undefined, timestamp: unknown): number | undefined {
  const exact = time === undefined ? Number.NaN : Date.parse(time)
  if (!Number.isNaN(exact)) return exact
  return typeof timestamp === 'number' ? timestamp * 1_000 : undefined
}

/** `x-acquired-count` counts every handing out from 4.3 on, `x-delivery-count` those that failed (all of them before). */
function deliveriesOf(headers: Readonly<Record<string, unknown>> | undefined): number {
  const count = (name: string): number => {
    const value = headers?.[name]
    return typeof value === 'number' && Number.isSafeInteger(value) ? value : 0
  }
  return 1 + Math.max(count('x-delivery-count'), count('x-acquired-count'))
}

/** Of a message of ours, the moment of sending is no header of its sender's. */
function textHeaders(
  table: Readonly<Record<string, unknown>>,
  isOurs: boolean,
): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const name of Object.keys(table)) {
    if (BROKERS.has(name) || (isOurs && name === TIME)) continue
    setHeader(texts, name, textOf(table[name]))
  }
  return texts
}

/** A foreign header may have any type of AMQP. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (Buffer.isBuffer(value)) return value.toString('utf8')
  if (typeof value === 'object' && value !== null) return JSON.stringify(value, plain)
  return String(value)
}

function plain(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
