import type { Envelope } from '../model/envelope.ts'

/**
 * How a message looks on a broker's wire: the body untouched, and headers that other languages can read. The attributes of
 * CloudEvents 1.0 (https://github.com/cloudevents/spec) stand under the prefix that its binding for the broker says; the
 * sender's own headers stand beside them under their own names.
 *
 * | attribute | is |
 * | --- | --- |
 * | `specversion` | `1.0` |
 * | `id` | the message's id |
 * | `source` | `/millrace` |
 * | `type` | the queue's name |
 * | `idempotencykey` | the sender's idempotency key, if there is one |
 * | `partitionkey` | the ordering key, if there is one (CloudEvents' extension for partitioning) |
 */
export function toWire(queue: string, envelope: Envelope, prefix: string): Record<string, string> {
  const { id, headers, idempotencyKey, orderingKey } = envelope
  const names = namesOf(prefix)
  const wire: Record<string, string> = { ...headers }
  wire[names.specversion] = '1.0'
  wire[names.id] = id
  wire[names.source] = SOURCE
  wire[names.type] = queue
  if (idempotencyKey !== undefined) wire[names.idempotencykey] = idempotencyKey
  if (orderingKey !== undefined) wire[names.partitionkey] = orderingKey
  return wire
}

const SOURCE = '/millrace'
const ATTRIBUTES = [
  'specversion',
  'id',
  'source',
  'type',
  'idempotencykey',
  'partitionkey',
] as const

type Names = Readonly<Record<(typeof ATTRIBUTES)[number], string>>

interface Prefixed extends Names {
  readonly all: readonly string[]
  /** What only a message of ours keeps from its reader. */
  readonly ours: ReadonlySet<string>
  readonly anybodys: ReadonlySet<string>
}

/** A handful: one for each transport. Every message needs these names, and putting them together costs more than the rest. */
const known = new Map<string, Prefixed>()

function namesOf(prefix: string): Prefixed {
  const found = known.get(prefix)
  if (found !== undefined) return found
  const at = (name: (typeof ATTRIBUTES)[number]): string => `${prefix}${name}`
  const all = ATTRIBUTES.map(at)
  const made: Prefixed = {
    specversion: at('specversion'),
    id: at('id'),
    source: at('source'),
    type: at('type'),
    idempotencykey: at('idempotencykey'),
    partitionkey: at('partitionkey'),
    all,
    ours: new Set(all),
    anybodys: new Set([at('id'), at('idempotencykey'), at('partitionkey')]),
  }
  known.set(prefix, made)
  return made
}

/** A header of the sender's that would hide one of ours; undefined when there is none. Such a message is `invalid`. */
export function hiddenHeader(envelope: Envelope, prefix: string): string | undefined {
  return namesOf(prefix).all.find((name) => name in envelope.headers)
}

/** What the headers of a received message say. */
export interface FromWire {
  /** Undefined for a foreign producer's bare message: the transport gives it the identity that its broker has. */
  readonly id: string | undefined
  readonly idempotencyKey?: string
  readonly orderingKey?: string
  /** All others, CloudEvents attributes of foreign producers among them. */
  readonly headers: Readonly<Record<string, string>>
}

/** Of a foreign CloudEvent, `source` and `type` stay headers, because they say something. */
export function fromWire(wire: Readonly<Record<string, string>>, prefix: string): FromWire {
  const names = namesOf(prefix)
  const taken = wire[names.source] === SOURCE ? names.ours : names.anybodys
  const headers: Record<string, string> = {}
  for (const name of Object.keys(wire)) {
    if (!taken.has(name)) setHeader(headers, name, wire[name] ?? '')
  }
  const idempotencyKey = wire[names.idempotencykey]
  const orderingKey = wire[names.partitionkey]
  return {
    id: wire[names.id],
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    headers,
  }
}

/** As `headers[name] = value`, also for the name that an object keeps for itself. */
export function setHeader(headers: Record<string, string>, name: string, value: string): void {
  if (name !== '__proto__') headers[name] = value
  else Object.defineProperty(headers, name, { ...OWN, value })
}

const OWN = { enumerable: true, configurable: true, writable: true } as const
