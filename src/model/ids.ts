import type { Clock } from './clock.ts'

const HEX: readonly string[] = Array.from({ length: 256 }, (_, n) =>
  n.toString(16).padStart(2, '0'),
)

/** A new message id: UUID version 7 (RFC 9562), so that ids sort by the time they were made. */
export function newId(clock: Clock, random: () => number): string {
  const ms = Math.max(0, Math.floor(clock.now()))
  const high = Math.floor(ms / 0x1_0000)
  const a = bits32(random)
  const b = bits32(random)
  const c = bits32(random)
  const variant = 0x80 | ((a >>> 16) & 0x3f)
  return (
    `${hex(high >>> 24)}${hex(high >>> 16)}${hex(high >>> 8)}${hex(high)}-${hex(ms >>> 8)}${hex(ms)}` +
    `-7${hex(a).charAt(1)}${hex(a >>> 8)}-${hex(variant)}${hex(a >>> 24)}` +
    `-${hex(b)}${hex(b >>> 8)}${hex(b >>> 16)}${hex(b >>> 24)}${hex(c)}${hex(c >>> 8)}`
  )
}

function bits32(random: () => number): number {
  return Math.floor(random() * 0x1_0000_0000) >>> 0
}

function hex(byte: number): string {
  return HEX[byte & 0xff] as string
}

const ID_MAX = 255

/** Ids and keys that a user may choose: 1 to 255 printable ASCII characters without spaces. */
export function isId(value: string): boolean {
  const { length } = value
  if (length === 0 || length > ID_MAX) return false
  for (let i = 0; i < length; i++) {
    const code = value.charCodeAt(i)
    if (code < 0x21 || code > 0x7e) return false
  }
  return true
}
