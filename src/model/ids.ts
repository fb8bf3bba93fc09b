import type { Clock } from './clock.ts'

/** A new message id: UUID version 7 (RFC 9562), so that ids sort by the time they were made. */
export function newId(clock: Clock, random: () => number): string {
  const time = Math.max(0, Math.floor(clock.now())).toString(16).padStart(12, '0').slice(-12)
  const a = hex(random, 0x1000, 3)
  const b = (0x8 | (Math.floor(random() * 4) & 0x3)).toString(16) + hex(random, 0x1000, 3)
  const c = hex(random, 0x1000000, 6) + hex(random, 0x1000000, 6)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${a}-${b}-${c}`
}

function hex(random: () => number, below: number, width: number): string {
  return Math.floor(random() * below)
    .toString(16)
    .padStart(width, '0')
}

const ID = /^[\x21-\x7e]{1,255}$/

/** Ids and keys that a user may choose: 1 to 255 printable ASCII characters without spaces. */
export function isId(value: string): boolean {
  return ID.test(value)
}
