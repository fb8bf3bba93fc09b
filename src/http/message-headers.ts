import type { IncomingHttpHeaders } from 'node:http'
import { isId } from '../model/ids.ts'
import type { SendOptions } from '../runtime/send.ts'
import { refuse } from './http-error.ts'

/** Trace context is carried along and never a reason to refuse a message; what is no trace context is left behind. */
const traceHeaders: readonly (readonly [string, RegExp])[] = [
  ['traceparent', /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/],
  ['tracestate', /^[\x20-\x7e]{1,512}$/],
  ['baggage', /^[\x20-\x7e]{1,4096}$/],
]

export const IDEMPOTENCY_HEADER = 'idempotency-key'
const DEDUPE_HEADER = 'millrace-dedupe-key'
const DELAY_HEADER = 'millrace-delay-ms'
const PRIORITY_HEADER = 'millrace-priority'

/** @throws RequestRefused 400 */
export function sendOptionsOf(headers: IncomingHttpHeaders): SendOptions {
  return {
    ...optional('idempotencyKey', keyOf(headers, IDEMPOTENCY_HEADER)),
    ...optional('dedupeKey', keyOf(headers, DEDUPE_HEADER)),
    ...optional('delayMs', integerOf(headers, DELAY_HEADER)),
    ...optional('priority', integerOf(headers, PRIORITY_HEADER)),
    headers: traceOf(headers),
  }
}

export function traceOf(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [name, form] of traceHeaders) {
    const value = headers[name]
    if (typeof value === 'string' && form.test(value)) found[name] = value
  }
  return found
}

function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: V }
}

function keyOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  if (value === undefined) return undefined
  if (typeof value === 'string' && isId(value)) return value
  throw refuse(
    400,
    'BAD_HEADER',
    `${name}: expected 1 to 255 printable ASCII characters without spaces, once`,
  )
}

function integerOf(headers: IncomingHttpHeaders, name: string): number | undefined {
  const value = headers[name]
  if (value === undefined) return undefined
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value)
  throw refuse(400, 'BAD_HEADER', `${name}: expected digits`)
}
