import { setHeader } from '../../transport/wire.ts'
import type { KafkaRecord } from './record-shapes.ts'

/**
 * The records of a batch, out of its bytes (decompressed, https://kafka.apache.org/documentation/#record). Bodies and keys are
 * views, nothing is copied. A third of the time that a message took here went into headers that are the same in each: what
 * stands at the same place as in the record before is not decoded again.
 *
 * @throws RangeError when the bytes are none
 */
export function readRecords(bytes: Buffer, count: number): readonly KafkaRecord[] {
  const records: KafkaRecord[] = []
  const from = cursor(bytes)
  for (let n = 0; n < count; n += 1) records.push(readRecord(from))
  return records
}

interface Cursor {
  readonly at: number
  skip(length: number): void
  /** Zigzag, at most 53 bits: lengths, and deltas of what is near. */
  number(): number
  /** Null where its length is negative. */
  bytes(): Buffer | null
  text(place: number): string
}

function readRecord(from: Cursor): KafkaRecord {
  const length = from.number()
  const end = from.at + length
  from.skip(1) // attributes, of which there are none yet
  const timestampDelta = from.number()
  const offsetDelta = from.number()
  const key = from.bytes()
  const value = from.bytes()
  const headers: Record<string, string> = {}
  for (let left = from.number(), place = 0; left > 0; left -= 1, place += 2) {
    setHeader(headers, from.text(place), from.text(place + 1))
  }
  if (from.at !== end) throw new RangeError(`a record of ${length} bytes ends elsewhere`)
  return { offsetDelta, timestampDelta, key, value, headers }
}

const LONGEST = 9

function cursor(bytes: Buffer): Cursor {
  let at = 0
  const same = sameTexts(bytes)
  const number = (): number => {
    let value = 0
    let scale = 1
    for (let n = 0; n < LONGEST; n += 1) {
      const byte = bytes[at]
      if (byte === undefined) break
      at += 1
      value += (byte & 0x7f) * scale
      // Halves with their sign: 0, -1, 1, -2, …
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
      scale *= 128
    }
    throw new RangeError(`there is no number at byte ${at}`)
  }
  const taken = (length: number): number => {
    const start = at
    if (length > bytes.length - at) throw new RangeError(`${length} bytes are not there`)
    at += length
    return start
  }
  return {
    get at() {
      return at
    },
    skip: (length) => void taken(length),
    number,
    bytes: () => {
      const length = number()
      if (length < 0) return null
      const start = taken(length)
      return bytes.subarray(start, at)
    },
    text: (place) => {
      const length = number()
      return length <= 0 ? '' : same(place, taken(length), at)
    },
  }
}

/** Texts by their place in a record, each remembered for the record after it. */
function sameTexts(bytes: Buffer): (place: number, start: number, end: number) => string {
  const starts: number[] = []
  const texts: string[] = []
  const lengths: number[] = []
  return (place, start, end) => {
    const before = starts[place] ?? 0
    const known = texts[place]
    if (known !== undefined && lengths[place] === end - start) {
      let n = 0
      while (start + n < end && bytes[start + n] === bytes[before + n]) n += 1
      if (start + n === end) return known
    }
    const text = bytes.toString('utf8', start, end)
    starts[place] = start
    lengths[place] = end - start
    texts[place] = text
    return text
  }
}
