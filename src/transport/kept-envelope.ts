import type { Envelope } from '../model/envelope.ts'
import { shareOf } from './fair-share.ts'

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** What is kept of an envelope: a copy, without the wishes that are settled once it is stored. */
export function keptEnvelope(envelope: Envelope): Envelope {
  const { id, idempotencyKey, orderingKey, priority } = envelope
  const body = copyOfBytes(envelope.body)
  const headers = copyOfHeaders(envelope.headers)
  // By far the most have no key, and what has the same fields in the same order costs the least.
  if (idempotencyKey === undefined && orderingKey === undefined && envelope.fairKey === undefined) {
    return { id, body, headers, priority }
  }
  return {
    id,
    body,
    headers,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    ...shareOf(envelope),
    priority,
  }
}

/** The `slice` of a Buffer is no copy: it would show what its owner writes later. */
function copyOfBytes(bytes: Uint8Array): Uint8Array {
  return Buffer.isBuffer(bytes) ? Buffer.from(bytes) : bytes.slice()
}

function copyOfHeaders(
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  for (const _ in headers) return Object.freeze({ ...headers })
  return noHeaders
}
