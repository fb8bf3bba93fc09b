import { MillraceError } from '../model/errors.ts'
import type { Codec } from './codec.ts'
import { pathText } from './path.ts'
import { NOT_PLAIN, plainCopy } from './plain-copy.ts'
import { findObstacle, isPlainJson } from './serializable.ts'

/**
 * Payloads as JSON in UTF-8. What arrives equals what was sent, or `encode` throws; nothing is lost in silence:
 * - strings round-trip, NUL and lone surrogates included; numbers round-trip, -0 included
 * - a Date arrives as its ISO string, and any object with `toJSON` as what that returns (the schema sees this form)
 * - a property that is undefined is left out
 * - JSON.rawJSON travels where JavaScript writes its value in the same way, and is refused elsewhere
 * - BigInt, NaN, Infinity, functions, symbols, undefined elsewhere, cycles, bytes, Map, Set, Error, invalid dates,
 *   instances without visible fields, named properties of arrays, and nesting beyond 1,000 levels are refused with the path of the value
 */
export const jsonCodec: Codec = {
  contentType: 'application/json',
  // Measured: Buffer.from takes 0.07 µs for 200 characters, a TextEncoder 0.5 µs.
  encode: (payload) => Buffer.from(toJsonText(payload)),
  encodeDecoded: (payload) => {
    const plain = ofPlain(payload)
    if (plain !== undefined) return plain
    const text = toJsonText(payload)
    return { bytes: Buffer.from(text), decoded: JSON.parse(text) }
  },
  decode: (bytes) => JSON.parse(toText(bytes)),
}

// ignoreBOM keeps a leading U+FEFF in the text, where JSON.parse refuses it instead of losing it.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function toText(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new SyntaxError('the message body is not UTF-8 text', { cause })
  }
}

/** Most payloads are plain. Measured for 200 characters: 0.08 µs for the copy, 0.45 µs for parsing the text. */
function ofPlain(payload: unknown): ReturnType<NonNullable<Codec['encodeDecoded']>> | undefined {
  try {
    const decoded = plainCopy(payload)
    if (decoded === NOT_PLAIN) return undefined
    return { bytes: Buffer.from(JSON.stringify(decoded)), decoded }
  } catch {
    // Whatever threw (a getter, a proxy, a text beyond all bounds) throws again below, where it gets its name.
    return undefined
  }
}

function toJsonText(payload: unknown): string {
  try {
    if (isPlainJson(payload)) return JSON.stringify(payload)
    const obstacle = findObstacle(payload)
    if (obstacle) throw unserializable(pathText(obstacle.path), obstacle.what)
    return JSON.stringify(payload, keepMinusZero)
  } catch (error) {
    if (error instanceof MillraceError) throw error
    throw unserializable('', 'a value whose getter, proxy or toJSON threw', error)
  }
}

/** JSON has -0 and JSON.parse reads it; only JSON.stringify does not write it. */
function keepMinusZero(_key: string, value: unknown): unknown {
  return value === 0 && Object.is(value, -0) ? minusZero : value
}

/** Node 21 and newer; not yet in TypeScript's library. */
const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): object }
const minusZero: object = rawJSON('-0')

function unserializable(path: string, what: string, cause?: unknown): MillraceError {
  const where = path === '' || path.startsWith('[') ? `payload${path}` : `payload.${path}`
  return new MillraceError(
    'MILLRACE_UNSERIALIZABLE_PAYLOAD',
    `${where} cannot travel as JSON: it is ${what}`,
    {
      cause,
      fields: { path },
    },
  )
}
