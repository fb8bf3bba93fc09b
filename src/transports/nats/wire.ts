import type { MsgHdrs } from '@nats-io/transport-node'
import type { Envelope } from '../../model/envelope.ts'
import type { AttemptHistory } from '../../model/history.ts'
import { freshHistory } from '../../model/history.ts'
import { fromWire, toWire } from '../../transport/wire.ts'
import { historyFrom } from './history.ts'

/** The prefix of CloudEvents' binding for NATS. */
const PREFIX = 'ce-'

/** Headers of the sender's that NATS could not carry as they are, as a JSON object. */
const PACKED = 'millrace-headers'
/** The history of a message that came back from the dead letters. */
export const HISTORY = 'millrace-history'
/** Epoch ms of the first send, where the stored moment is a later one. */
export const SENT_AT = 'millrace-sent-at'
/** What a dead letter says about its death, as JSON. */
export const DEATH = 'millrace-death'

/** The headers of a message as it is published, those of the sender's first. */
export function wireHeaders(queue: string, envelope: Envelope): Record<string, string> {
  const plain: Record<string, string> = {}
  const packed: Record<string, string> = {}
  for (const [name, value] of Object.entries(envelope.headers)) {
    if (isPlain(name, value)) plain[name] = value
    else packed[name] = value
  }
  const wire = toWire(queue, { ...envelope, headers: plain }, PREFIX)
  return Object.keys(packed).length === 0 ? wire : { ...wire, [PACKED]: JSON.stringify(packed) }
}

/**
 * Names are printable ASCII without a colon; the client trims values and a line ends at CR or LF. A `Nats-` header would be
 * an order to the server (`Nats-Rollup` purges, `Nats-TTL` ends), so none of a sender's goes there.
 */
function isPlain(name: string, value: string): boolean {
  return (
    /^[!-9;-~]+$/.test(name) &&
    !/^(nats-|millrace-|ce-)/i.test(name) &&
    !/[\r\n\0]/.test(value) &&
    value.trim() === value
  )
}

/** What a received message is, apart from its body. */
export interface Received {
  readonly id: string | undefined
  readonly idempotencyKey?: string
  readonly orderingKey?: string
  readonly headers: Readonly<Record<string, string>>
  readonly history: AttemptHistory
  /** Epoch ms; undefined: the moment when the server stored it. */
  readonly sentAt: number | undefined
}

export function readWire(headers: MsgHdrs | undefined): Received {
  const wire: Record<string, string> = {}
  const ours = new Map<string, string>()
  for (const [name, values] of headers ?? []) {
    const value = values.join(', ')
    if (/^millrace-/.test(name)) ours.set(name, value)
    else if (!/^Nats-/i.test(name)) wire[name] = value
  }
  const read = fromWire(wire, PREFIX)
  const sentAt = Number(ours.get(SENT_AT))
  return {
    ...read,
    headers: { ...read.headers, ...unpack(ours.get(PACKED)) },
    history: historyFrom(ours.get(HISTORY)) ?? freshHistory,
    sentAt: Number.isSafeInteger(sentAt) && sentAt > 0 ? sentAt : undefined,
  }
}

function unpack(text: string | undefined): Record<string, string> {
  const value = parsed(text)
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(
    Object.entries(value).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  )
}

/** JSON of a header, which anybody may have written; undefined when it is none. */
export function parsed(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Bytes of the headers on the wire. */
export function headersSize(headers: Readonly<Record<string, string>>): number {
  let bytes = STATUS_LINE
  for (const [name, value] of Object.entries(headers)) {
    bytes += name.length + Buffer.byteLength(value) + LINE_EXTRA
  }
  return bytes
}

const STATUS_LINE = 'NATS/1.0\r\n\r\n'.length
const LINE_EXTRA = ': \r\n'.length
