import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIP } from 'node:net'
import { classifyStatus } from '../model/classify-http.ts'
import { PermanentError, ThrottledError, TransientError } from '../model/errors.ts'
import { printable, redact } from '../model/redact.ts'
import type { HandlerContext, Message } from '../runtime/message.ts'
import { exchange, type Reply } from './exchange.ts'
import { addressRefused } from './guarded-lookup.ts'
import { HttpStatusError } from './http-status-error.ts'
import {
  type HttpTargetOptions,
  type ResolvedTarget,
  resolveTarget,
  type TargetUrl,
} from './http-target-options.ts'
import { signWebhook } from './sign-webhook.ts'
import { placeOf, targetBody, targetHeaders, targetUrl } from './target-request.ts'

export type { HttpTargetOptions } from './http-target-options.ts'

/** A handler that pushes each message to a URL. */
export interface HttpTarget<Payload> {
  (message: Message<Payload>, ctx: Pick<HandlerContext<unknown>, 'signal'>): Promise<void>
  /** Closes idle connections. They do not keep a process alive, so this is for tests. Idempotent. */
  close(): void
}

/** Shorter than the five seconds after which a plain Node server closes an idle connection. */
const IDLE_MS = 4_000
const IDLE_SOCKETS_MAX = 16
const REDIRECTS_MAX = 3

/**
 * Pushes each message to a URL: so a worker can be written in any language. 2xx acks; 429, and 503 with Retry-After,
 * wait as told; 408, 425, other 5xx and network failures are retried; other 4xx and 3xx go to the dead letters.
 * Addresses are checked when connecting: private ones are refused unless allowed.
 * @example
 * app.work(deliveries, httpTarget((message) => message.payload.url, { secret: 'whsec_…' }))
 * @throws MILLRACE_INVALID_OPTIONS; when run TransientError, PermanentError, ThrottledError (with HttpStatusError as
 * cause), MILLRACE_ADDRESS_REFUSED, or the network's own error for the classifier.
 */
export function httpTarget<Payload = unknown>(
  url: TargetUrl<Payload>,
  options: HttpTargetOptions<Payload> = {},
): HttpTarget<Payload> {
  const target = resolveTarget(url, options)
  const bounds = {
    keepAlive: true,
    maxSockets: target.maxSockets,
    maxFreeSockets: IDLE_SOCKETS_MAX,
    timeout: IDLE_MS,
  }
  const agents: Agents = { 'http:': new HttpAgent(bounds), 'https:': new HttpsAgent(bounds) }
  const run = (
    message: Message<Payload>,
    ctx: Pick<HandlerContext<unknown>, 'signal'>,
  ): Promise<void> =>
    withTimeout(target, ctx.signal, (signal) => push(target, agents, message, signal))
  return Object.assign(run, {
    close: () => {
      agents['http:'].destroy()
      agents['https:'].destroy()
    },
  })
}

type Agents = Readonly<Record<'http:' | 'https:', HttpAgent>>

async function push<Payload>(
  target: ResolvedTarget<Payload>,
  agents: Agents,
  message: Message<Payload>,
  signal: AbortSignal,
): Promise<void> {
  const { method, lookup, clock, secrets } = target
  const body = targetBody(target.bodyOf(message))
  const own = target.headersOf(message)
  const signed =
    secrets.length > 0 ? signWebhook(secrets, { id: message.id, at: clock.now(), body }) : {}
  const first = targetUrl(await target.urlOf(message))
  let url = first
  for (let hop = 0; ; hop++) {
    checkLiteral(url, target)
    const headers = targetHeaders(
      message,
      { ...(url.origin === first.origin ? own : {}), ...signed },
      body.byteLength,
    )
    const agent = agents[url.protocol === 'https:' ? 'https:' : 'http:']
    const reply = await named(
      method,
      url,
      exchange({ url, method, headers, body, agent, lookup, signal }),
    )
    const next =
      target.redirects === 'follow' && hop < REDIRECTS_MAX ? redirectOf(reply, url) : undefined
    if (next === undefined) return conclude(reply, `${method} ${placeOf(url)}`, clock.now())
    url = next
  }
}

/** Node asks no lookup for an address that is written in the URL. */
function checkLiteral<Payload>(url: URL, { isAllowed }: ResolvedTarget<Payload>): void {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0 && !isAllowed(host)) throw addressRefused(host, host)
}

/** 307 and 308 keep method and body; the others would turn the message into a GET. */
function redirectOf({ status, headers }: Reply, from: URL): URL | undefined {
  const { location } = headers
  if ((status !== 307 && status !== 308) || location === undefined) return undefined
  if (!URL.canParse(location, from.href)) return undefined
  const to = targetUrl(new URL(location, from.href))
  return from.protocol === 'https:' && to.protocol === 'http:' ? undefined : to
}

/** Names the target in a network error, and leaves the decision about it to the classifier. */
async function named<T>(method: string, url: URL, running: Promise<T>): Promise<T> {
  try {
    return await running
  } catch (cause) {
    if (isOurs(cause)) throw cause
    const message = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${method} ${placeOf(url)} failed: ${message || codeOf(cause)}`, { cause })
  }
}

function isOurs(error: unknown): boolean {
  return error instanceof Error && codeOf(error).startsWith('MILLRACE_')
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error
    ? String(error.code)
    : 'no reason given'
}

function conclude(reply: Reply, what: string, now: number): void {
  if (reply.status >= 200 && reply.status < 300) return
  const excerpt = redact(printable(reply.excerpt)).trim()
  const message = `${what} answered ${reply.status}${excerpt === '' ? '' : `: ${excerpt}`}`
  const cause = new HttpStatusError(message, reply.status, reply.headers)
  const found = classifyStatus(reply.status, reply.headers, now)
  switch (found?.errorClass) {
    case 'throttled':
      throw new ThrottledError(message, {
        cause,
        ...(found.delayMs === undefined ? {} : { retryAfterMs: found.delayMs }),
      })
    case 'permanent':
      throw new PermanentError(message, { cause })
    default:
      throw new TransientError(message, { cause })
  }
}

/** Aborts at the timeout or with the run, whichever is first, and leaves no timer or listener behind. */
async function withTimeout<Payload>(
  { clock, timeoutMs }: ResolvedTarget<Payload>,
  outer: AbortSignal,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  outer.throwIfAborted()
  const abort = new AbortController()
  const ended = (): void => abort.abort(outer.reason)
  outer.addEventListener('abort', ended, { once: true })
  const cancel = clock.after(timeoutMs, () =>
    abort.abort(new DOMException(`no answer within ${timeoutMs} ms`, 'TimeoutError')),
  )
  try {
    await run(abort.signal)
  } catch (error) {
    // The runtime tells its own reasons apart from failures of the receiver.
    throw outer.aborted ? outer.reason : error
  } finally {
    cancel()
    outer.removeEventListener('abort', ended)
  }
}
