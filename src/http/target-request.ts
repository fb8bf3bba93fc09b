import { jsonCodec } from '../codec/json.ts'
import { PermanentError } from '../model/errors.ts'
import { redact } from '../model/redact.ts'
import type { Message } from '../runtime/message.ts'

/** Taken over from the message, so that the receiver's trace continues the sender's. */
const TRACE_HEADERS: readonly string[] = ['traceparent', 'tracestate', 'baggage']

/** The body of the request: what the user's function says, else the payload as JSON. */
export function targetBody(given: unknown): Uint8Array {
  if (given instanceof Uint8Array) return given
  return typeof given === 'string' ? Buffer.from(given) : jsonCodec.encode(given)
}

/** Headers that every request has; later ones win: ours, the user's, then what must be right. */
export function targetHeaders(
  message: Message<unknown>,
  own: Readonly<Record<string, string>>,
  bodyBytes: number,
): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'user-agent': 'millrace',
    'idempotency-key': headerSafe(message.idempotencyKey),
    'millrace-message-id': headerSafe(message.id),
    'millrace-attempt': String(message.attempt),
  }
  for (const name of TRACE_HEADERS) {
    const value = message.headers[name]
    if (value !== undefined) headers[name] = headerSafe(value)
  }
  for (const [name, value] of Object.entries(own)) headers[name.toLowerCase()] = value
  headers['content-length'] = String(bodyBytes)
  return headers
}

/** A key derived from a payload may hold any character; a header may not. */
function headerSafe(value: string): string {
  return /^[\x20-\x7e]*$/.test(value) ? value : encodeURIComponent(value.toWellFormed())
}

/** @throws PermanentError for what can never be requested. */
export function targetUrl(given: string | URL): URL {
  const url = URL.canParse(String(given)) ? new URL(String(given)) : undefined
  if (!url)
    throw new PermanentError(
      `expected an absolute URL, got ${JSON.stringify(redact(String(given)).slice(0, 200))}`,
    )
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new PermanentError(`expected http: or https:, got ${url.protocol} in ${placeOf(url)}`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new PermanentError(
      `credentials in the URL of ${placeOf(url)} are refused; send them in a header`,
    )
  }
  return url
}

/** Names a target in messages: no query, no credentials, for those hold secrets. */
export function placeOf(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`.slice(0, 300)
}
