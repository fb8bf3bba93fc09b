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

const IDEMPOTENCY_HEADER = 'idempotency-key'
const DEDUPE_HEADER = 'millrace-dedupe-key'
const DELAY_HEADER = 'millrace-delay-ms'
const PRIORITY_HEADER = 'millrace-priority'

const OWN_PREFIX = 'millrace-'
const OWN: readonly string[] = [DELAY_HEADER, PRIORITY_HEADER, DEDUPE_HEADER]
/** Those of our own `httpTarget`, which may send to an intake: they tell of the message there, and change nothing here. */
const OF_TARGET: readonly string[] = ['millrace-message-id', 'millrace-attempt']

/** @throws RequestRefused 400 */
export function sendOptionsOf(headers: IncomingHttpHeaders): SendOptions {
  refuseStrangers(headers)
  return {
    ...optional('idempotencyKey', keyOf(headers, IDEMPOTENCY_HEADER)),
    ...optional('dedupeKey', keyOf(headers, DEDUPE_HEADER)),
    ...optional('delayMs', integerOf(headers, DELAY_HEADER)),
    ...optional('priority', integerOf(headers, PRIORITY_HEADER)),
    headers: traceOf(headers),
  }
}

/** A delay that was misspelt would be a message that runs at once. */
function refuseStrangers(headers: IncomingHttpHeaders): void {
  const stranger = Object.keys(headers).find(
    (name) => name.startsWith(OWN_PREFIX) && !OWN.includes(name) && !OF_TARGET.includes(name),
  )
  if (stranger === undefined) return
  const name = stranger.slice(0, 64)
  throw refuse(400, 'BAD_HEADER', `unknown header ${name}; expected one of ${OWN.join(', ')}`)
}

/**
 * What concerns one message is said in the batch, of each.
 * @throws RequestRefused 400
 */
export function checkBatchHeaders(headers: IncomingHttpHeaders): void {
  if (headers[IDEMPOTENCY_HEADER] !== undefined) {
    throw refuse(
      400,
      'BAD_HEADER',
      'a batch takes no Idempotency-Key header; give each message its idempotencyKey',
    )
  }
  refuseStrangers(headers)
  const own = OWN.find((name) => headers[name] !== undefined)
  if (own === undefined) return
  const instead =
    own === DELAY_HEADER ? 'give each message its delayMs' : 'send such messages one by one'
  throw refuse(400, 'BAD_HEADER', `a batch takes no ${own} header; ${instead}`)
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
