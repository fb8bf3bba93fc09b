import type { Envelope } from '../model/envelope.ts'

/** What is kept of an envelope: a copy, without the wishes that are settled once it is stored. */
export function keptEnvelope(envelope: Envelope): Envelope {
  const { id, body, headers, idempotencyKey, orderingKey, priority } = envelope
  return {
    id,
    body: body.slice(),
    headers: Object.freeze({ ...headers }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    priority,
  }
}
