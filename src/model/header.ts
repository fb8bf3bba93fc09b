import { read } from './probe.ts'

/** Enough for any response; a hostile object may claim to have millions. */
const SCAN_MAX = 256

/**
 * One header out of whatever a client library calls headers: a `Headers`, a `Map`, a plain object of any case with
 * strings or lists. A header that came several times is joined by a comma, as HTTP does. Never throws.
 */
export function headerOf(headers: unknown, name: string): string | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined
  try {
    const get = read(headers, 'get')
    if (typeof get === 'function') return text(get.call(headers, name))
    const direct = read(headers, name)
    if (direct !== undefined) return text(direct)
    const key = Object.keys(headers)
      .slice(0, SCAN_MAX)
      .find((k) => k.toLowerCase() === name)
    return key === undefined ? undefined : text(read(headers, key))
  } catch {
    return undefined
  }
}

function text(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  if (Array.isArray(value) && value.length > 0)
    return value.slice(0, SCAN_MAX).map(String).join(', ')
  return undefined
}
