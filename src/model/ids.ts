import type { Clock } from './clock.ts'

/** The two digits of each byte, as character codes. */
const HEX: Uint8Array = Buffer.from(
  Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0')).join(''),
  'latin1',
)

/** A new id: UUID version 7 (RFC 9562), so that ids sort by the time they were made. */
export function newId(clock: Clock, random: () => number): string {
  return idMaker(clock, random)()
}

/** Ids of one millisecond are told apart by a counter of 12 bits, which starts in its lower half. */
const COUNTER_START_MAX = 0x7ff
const COUNTER_MAX = 0xfff
/** Within this the ids go on from the last one when the clock goes back, in ms; beyond it they follow the clock. */
const BACK_MAX_MS = 1_000

/** Makes one id. `again`: of the same moment as the one before, so that the clock need not be asked. */
export type MakeId = (again?: boolean) => string

/**
 * Makes ids that grow with each one, also within a millisecond (RFC 9562, 6.2, method 1). A unique index then grows at
 * its end: ten rows cost SQLite 12 µs instead of 17 (1,000 in a transaction, median of 5 rounds).
 * Written as bytes: joined of texts an id takes 0.27 µs until somebody has read it, and so 0.13.
 */
export function idMaker(clock: Clock, random: () => number): MakeId {
  const text = Buffer.from('00000000-0000-7000-8000-000000000000', 'latin1')
  let lastMs = Number.NEGATIVE_INFINITY
  let counter = 0
  const startAt = (ms: number): void => {
    lastMs = ms
    counter = Math.floor(random() * (COUNTER_START_MAX + 1))
    putTime(text, ms)
  }
  return (again = false) => {
    const now = again ? lastMs : Math.max(0, Math.floor(clock.now()))
    if (now > lastMs || now < lastMs - BACK_MAX_MS) startAt(now)
    else if (counter < COUNTER_MAX) counter += 1
    else startAt(lastMs + 1)
    text[15] = HEX[2 * (counter >>> 8) + 1] as number
    putByte(text, 16, counter)
    putTail(text, random)
    return text.toString('latin1')
  }
}

function putTime(text: Uint8Array, ms: number): void {
  const high = Math.floor(ms / 0x1_0000)
  putByte(text, 0, high >>> 24)
  putByte(text, 2, high >>> 16)
  putByte(text, 4, high >>> 8)
  putByte(text, 6, high)
  putByte(text, 9, ms >>> 8)
  putByte(text, 11, ms)
}

/** 62 bits that nobody can tell beforehand, behind the variant. */
function putTail(text: Uint8Array, random: () => number): void {
  const a = bits32(random)
  const b = bits32(random)
  putByte(text, 19, 0x80 | (a & 0x3f))
  putByte(text, 21, a >>> 8)
  for (let at = 24, bits = a >>> 16; at < 28; at += 2, bits >>>= 8) putByte(text, at, bits)
  for (let at = 28, bits = b; at < 36; at += 2, bits >>>= 8) putByte(text, at, bits)
}

function bits32(random: () => number): number {
  return Math.floor(random() * 0x1_0000_0000) >>> 0
}

function putByte(text: Uint8Array, at: number, byte: number): void {
  text[at] = HEX[2 * (byte & 0xff)] as number
  text[at + 1] = HEX[2 * (byte & 0xff) + 1] as number
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
