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
  return {
    ...headers,
    [`${prefix}specversion`]: '1.0',
    [`${prefix}id`]: id,
    [`${prefix}source`]: SOURCE,
    [`${prefix}type`]: queue,
    ...(idempotencyKey === undefined ? {} : { [`${prefix}idempotencykey`]: idempotencyKey }),
    ...(orderingKey === undefined ? {} : { [`${prefix}partitionkey`]: orderingKey }),
  }
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

/** A header of the sender's that would hide one of ours; undefined when there is none. Such a message is `invalid`. */
export function hiddenHeader(envelope: Envelope, prefix: string): string | undefined {
  return ATTRIBUTES.map((name) => `${prefix}${name}`).find((name) => name in envelope.headers)
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
  const at = (name: string): string | undefined => wire[`${prefix}${name}`]
  const isOurs = at('source') === SOURCE
  const taken = new Set<string>(
    (isOurs ? ATTRIBUTES : (['id', 'idempotencykey', 'partitionkey'] as const)).map(
      (name) => `${prefix}${name}`,
    ),
  )
  const idempotencyKey = at('idempotencykey')
  const orderingKey = at('partitionkey')
  return {
    id: at('id'),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    headers: Object.fromEntries(Object.entries(wire).filter(([name]) => !taken.has(name))),
  }
}
