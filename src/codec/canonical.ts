import { hash } from 'node:crypto'
import { MillraceError } from '../model/errors.ts'
import { DEPTH_MAX } from './serializable.ts'

/**
 * One text for one value, whatever the order of its keys: keys sorted by UTF-16 code units, numbers and strings as
 * ECMAScript writes them, no spaces (for JSON values this is RFC 8785). What other codecs decode (Date, BigInt, Map,
 * Set, bytes, undefined) gets a form that no JSON value has, so that the two never meet.
 * @throws MILLRACE_UNSERIALIZABLE_PAYLOAD for cycles and nesting beyond 1,000 levels
 */
export function canonicalJson(value: unknown): string {
  return write(value, 0)
}

/** SHA-256, in hex, of the canonical form of a decoded payload; of the bytes themselves when it is bytes. */
export function fingerprint(payload: unknown): string {
  return hash('sha256', payload instanceof Uint8Array ? payload : canonicalJson(payload), 'hex')
}

function write(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      return Number.isFinite(value) ? JSON.stringify(value) : String(value)
    case 'bigint':
      return `${value}n`
    case 'object':
      return value === null ? 'null' : writeObject(value, depth)
    default:
      return String(value)
  }
}

function writeObject(value: object, depth: number): string {
  if (depth >= DEPTH_MAX) throw tooDeep()
  const next = (item: unknown): string => write(item, depth + 1)
  if (Array.isArray(value)) return `[${value.map(next).join(',')}]`
  if (value instanceof Date) return `Date(${value.getTime()})`
  if (value instanceof Uint8Array) return `Bytes(${Buffer.from(value).toString('base64')})`
  if (value instanceof Map) return `Map(${[...value].map(next).join(',')})`
  if (value instanceof Set) return `Set(${[...value].map(next).join(',')})`
  const members: string[] = []
  for (const key of Object.keys(value).sort()) {
    const member = (value as Record<string, unknown>)[key]
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${next(member)}`)
  }
  return `{${members.join(',')}}`
}

function tooDeep(): MillraceError {
  return new MillraceError(
    'MILLRACE_UNSERIALIZABLE_PAYLOAD',
    `payload has no fingerprint: it is nested deeper than ${DEPTH_MAX} levels, or contains itself`,
    { fields: { path: '' } },
  )
}
