import { isBlobName } from '../blobs/blob-store.ts'
import type { Clock } from '../model/clock.ts'
import type { Envelope } from '../model/envelope.ts'
import { newId } from '../model/ids.ts'

export const BLOB_HEADER = 'millrace-blob'
const BYTES_HEADER = 'millrace-blob-bytes'

/** Which blob a message stands for. */
export interface BlobReference {
  /** Anything at all when somebody else wrote the message. */
  readonly name: string
  readonly bytes: number
}

/** The message that travels instead; its body is for people who look at the queue, the headers are what is read. */
export function referring(envelope: Envelope, name: string): Envelope {
  const bytes = envelope.body.byteLength
  const headers = { ...envelope.headers, [BLOB_HEADER]: name, [BYTES_HEADER]: String(bytes) }
  const body = new TextEncoder().encode(JSON.stringify({ [BLOB_HEADER]: name, bytes }))
  return { ...envelope, body, headers }
}

/** The message as it was sent. */
export function redeemed(envelope: Envelope, body: Uint8Array): Envelope {
  const { [BLOB_HEADER]: _, [BYTES_HEADER]: __, ...headers } = envelope.headers
  return { ...envelope, body, headers }
}

/** Undefined for a message that has its body with it. */
export function referenceOf({ headers }: Envelope): BlobReference | undefined {
  const name = headers[BLOB_HEADER]
  if (name === undefined) return undefined
  const bytes = Number(headers[BYTES_HEADER])
  return { name, bytes: Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : 0 }
}

export function isSound({ name }: BlobReference): boolean {
  return isBlobName(name)
}

const ID_CHARS_MAX = 100
/** What 48 bits of a name can say. */
const TIME_MAX_MS = 0xffff_ffff_ffff

/**
 * A new name for each sending: when the message is ready, something random, and its id for people. Two sendings of one id
 * must not share a blob, because the second may be refused and its blob removed.
 */
export function blobName(envelope: Envelope, clock: Clock, random: () => number): string {
  const readyAt = envelope.readyAt ?? clock.now() + (envelope.delayMs ?? 0)
  const at = Math.min(TIME_MAX_MS, Math.max(clock.now(), readyAt))
  const id = envelope.id.replace(/[^\w-]/g, '_').slice(0, ID_CHARS_MAX)
  return `${newId({ now: () => at, after: clock.after }, random)}.${id}`
}

/** What sorts after every name made for an earlier moment, and before every later one. */
export function namesBefore(ms: number): string {
  const hex = Math.min(TIME_MAX_MS, Math.max(0, Math.floor(ms)))
    .toString(16)
    .padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}
