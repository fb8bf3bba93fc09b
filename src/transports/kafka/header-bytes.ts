import type { Envelope } from '../../model/envelope.ts'
import { toWire } from '../../transport/wire.ts'
import { PREFIX } from './records.ts'

/** What stands in message after message, made once: names of headers, and what ours say of the queue and its sender. */
const known = new Map<string, Buffer>()
/** The names of headers are the sender's, and may be different each time. */
const KNOWN_MAX = 1_000
const SAME_IN_ALL = new Set(['specversion', 'source', 'type'].map((name) => `${PREFIX}${name}`))

/** The headers of a message as the client takes them. */
export function headerBytes(queue: string, envelope: Envelope): Map<Buffer, Buffer> {
  const wire = toWire(queue, envelope, PREFIX)
  const bytes = new Map<Buffer, Buffer>()
  for (const name of Object.keys(wire)) {
    const value = wire[name] ?? ''
    bytes.set(bytesOf(name), SAME_IN_ALL.has(name) ? bytesOf(value) : Buffer.from(value))
  }
  return bytes
}

function bytesOf(text: string): Buffer {
  const found = known.get(text)
  if (found !== undefined) return found
  if (known.size >= KNOWN_MAX) known.clear()
  const made = Buffer.from(text)
  known.set(text, made)
  return made
}
