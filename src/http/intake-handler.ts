import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Cancel } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import type { AnyQueue } from '../runtime/queue.ts'
import { isLoopbackHost } from './address.ts'
import { type Refusal, refusalBody, refuse } from './http-error.ts'
import type { IntakeApp, ResolvedIntakeOptions } from './intake-options.ts'
import { checkBatchHeaders, sendOptionsOf, traceOf } from './message-headers.ts'
import { refusalOfError } from './refusal-of-error.ts'
import { readJson } from './request-body.ts'
import { scaleOf } from './scale-request.ts'
import { plainResult, sendBatch } from './send-batch.ts'
import { tokenCheck } from './token-check.ts'

interface Answer {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

interface Context {
  readonly app: IntakeApp
  readonly options: ResolvedIntakeOptions
  readonly isAuthorized: (authorization: string | undefined) => boolean
  readonly isClosing: () => boolean
}

export type RequestHandler = (req: IncomingMessage, res: ServerResponse) => void

/** Answers every request with JSON, whatever happens. */
export function intakeHandler(
  app: IntakeApp,
  options: ResolvedIntakeOptions,
  isClosing: () => boolean,
): RequestHandler {
  const context = { app, options, isAuthorized: tokenCheck(options.tokens), isClosing }
  return (req, res) => {
    answer(req, res, context)
      .catch((error: unknown) => refusing(refusalOfError(error, options.logger)))
      .then((ready) => write(res, ready, req.method === 'HEAD', isClosing()))
      .catch((error: unknown) => void res.destroy(error instanceof Error ? error : undefined))
  }
}

/** Answers a request that never comes to the handler. */
export function answerRefused(req: IncomingMessage, res: ServerResponse, refusal: Refusal): void {
  write(res, refusing(refusal), req.method === 'HEAD', true)
}

function refusing(refusal: Refusal): Answer {
  const { status, headers } = refusal
  return { status, body: refusalBody(refusal), ...(headers ? { headers } : {}) }
}

function write(
  res: ServerResponse,
  { status, body, headers }: Answer,
  isHead: boolean,
  isClosing: boolean,
): void {
  if (res.headersSent || res.destroyed) return
  const text = JSON.stringify(body)
  res.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(isClosing ? { connection: 'close' } : {}),
    ...headers,
  })
  res.end(isHead ? undefined : text)
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  context: Context,
): Promise<Answer> {
  const { app } = context
  const path = (req.url ?? '/').split('?', 1)[0] ?? '/'
  if (path === '/healthz') return allow(req, 'GET', { status: 200, body: { ok: true } })
  if (path === '/readyz') return allow(req, 'GET', await readiness(req, context))
  const scaled = /^\/scale\/([^/]+)$/.exec(path)
  if (scaled) {
    authorize(req, context)
    if (req.method !== 'GET' && req.method !== 'HEAD') throw notAllowed('GET, HEAD')
    const queue = findQueue(scaled[1] ?? '', context)
    return { status: 200, body: await scaleOf(app, queue.name, req.url ?? '') }
  }
  const route = /^\/queues\/([^/]+)\/messages(\/batch)?$/.exec(path)
  if (!route)
    throw refuse(
      404,
      'NOT_FOUND',
      'expected POST /queues/:name/messages or /queues/:name/messages/batch, or GET /scale/:name',
    )
  authorize(req, context)
  if (req.method !== 'POST') throw notAllowed('POST')
  const queue = findQueue(route[1] ?? '', context)
  return route[2] ? receiveBatch(req, res, queue, context) : receiveOne(req, res, queue, context)
}

function allow(req: IncomingMessage, method: 'GET', ready: Answer): Answer {
  if (req.method === method || req.method === 'HEAD') return ready
  throw notAllowed(`${method}, HEAD`)
}

function notAllowed(allowed: string): Error {
  return refuse(405, 'METHOD_NOT_ALLOWED', `this path takes ${allowed}`, { allow: allowed })
}

/** Reasons name parts of the system, so only those who may send see them. */
async function readiness(
  req: IncomingMessage,
  { app, options, isAuthorized, isClosing }: Context,
): Promise<Answer> {
  const health = isClosing()
    ? { ok: false, reasons: ['the intake is closing'] }
    : await app.health()
  const seesReasons = options.tokens.length === 0 || isAuthorized(req.headers.authorization)
  return {
    status: health.ok ? 200 : 503,
    body: { ok: health.ok, ...(seesReasons ? { reasons: health.reasons } : {}) },
  }
}

function authorize(req: IncomingMessage, { options, isAuthorized }: Context): void {
  if (options.tokens.length > 0) {
    if (isAuthorized(req.headers.authorization)) return
    throw refuse(401, 'UNAUTHORIZED', 'send authorization: Bearer <token>', {
      'www-authenticate': 'Bearer',
    })
  }
  // Without tokens only this machine may send. A web page that had its name resolved to 127.0.0.1 may not: its
  // requests carry that name in Host (DNS rebinding).
  const host = (req.headers.host ?? '').replace(/:\d+$/, '')
  if (!isLoopbackHost(host)) {
    throw refuse(
      403,
      'FORBIDDEN_HOST',
      'an intake without tokens answers to localhost only; give tokens to serve other names',
    )
  }
}

function findQueue(encoded: string, { app, options }: Context): AnyQueue {
  let name: string
  try {
    name = decodeURIComponent(encoded)
  } catch {
    throw refuse(400, 'BAD_PATH', 'the name of the queue is not percent-encoded UTF-8')
  }
  const queue = options.queues.has(name) ? app.queues.find((q) => q.name === name) : undefined
  if (queue) return queue
  throw refuse(
    404,
    'MILLRACE_UNKNOWN_QUEUE',
    `no queue ${JSON.stringify(name.slice(0, 100))} takes messages here`,
  )
}

async function receiveOne(
  req: IncomingMessage,
  res: ServerResponse,
  queue: AnyQueue,
  { app, options }: Context,
): Promise<Answer> {
  const send = sendOptionsOf(req.headers)
  const payload = await readJson(req, options.maxBodyBytes)
  const result = await withinTime(res, options, (signal) =>
    app.send(queue, payload, { ...send, signal }),
  )
  return { status: 202, body: plainResult(result) }
}

async function receiveBatch(
  req: IncomingMessage,
  res: ServerResponse,
  queue: AnyQueue,
  { app, options }: Context,
): Promise<Answer> {
  checkBatchHeaders(req.headers)
  const body = await readJson(req, options.maxBodyBytes)
  const headers = traceOf(req.headers)
  return withinTime(res, options, (signal) =>
    sendBatch(app, queue, body, { headers, signal }, options.logger),
  )
}

/** The sender is answered in time, and a sender that went away is not worked for. */
async function withinTime<T>(
  res: ServerResponse,
  { clock, sendTimeoutMs }: ResolvedIntakeOptions,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController()
  const giveUp = (why: string) => (): void =>
    abort.abort(new MillraceError('MILLRACE_OUTCOME_UNKNOWN', why, { retryable: true }))
  const gone = giveUp('the sender went away before the backend confirmed')
  const cancel: Cancel = clock.after(
    sendTimeoutMs,
    giveUp(`the backend did not confirm within ${sendTimeoutMs} ms`),
  )
  res.once('close', gone)
  try {
    return await run(abort.signal)
  } finally {
    cancel()
    res.off('close', gone)
  }
}
