import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type ErrorCode, MillraceError, OptionsError } from '../model/errors.ts'
import { read } from '../model/probe.ts'
import { show } from '../model/problems.ts'
import type { IntakeOptions } from '../runtime/intake-options.ts'
import { type Refusal, refusalBody } from './http-error.ts'
import { answerRefused, intakeHandler, type RequestHandler } from './intake-handler.ts'
import { type IntakeApp, resolveIntakeOptions } from './intake-options.ts'
import { CUT_BODY } from './request-body.ts'

/** An HTTP door to the queues of an app. */
export interface Intake {
  /** Where it listens, `http://127.0.0.1:4000`; with port 0 known once it listens. */
  readonly url: string
  /** Resolves when it listens; again and again the same. Rejects when the port is taken. */
  listen(): Promise<void>
  /** Takes no more requests, finishes those it has until `timeoutMs` (default 10,000), then cuts them. Idempotent. */
  close(options?: { readonly timeoutMs?: number }): Promise<void>
  /** To mount in a server of your own, before anything that reads bodies. */
  readonly handler: RequestHandler
}

const CLOSE_TIMEOUT_MS = 10_000
const HEADERS_MAX_BYTES = 16_384
const HEADERS_MAX_COUNT = 100
/** How often Node looks for requests that are late. */
const LATE_CHECK_MS = 500

/**
 * `POST /queues/:name/messages` (the body is the payload), `POST /queues/:name/messages/batch`, `/healthz`, `/readyz`.
 * Listens on loopback by default; other addresses need tokens.
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function intake(app: IntakeApp, options: IntakeOptions = {}): Intake {
  checkApp(app)
  const resolved = resolveIntakeOptions(app, options)
  let closing: Promise<void> | undefined
  let listening: Promise<void> | undefined
  const handler = intakeHandler(app, resolved, () => closing !== undefined)
  const replies = new WeakMap<Socket, ServerResponse>()
  const server = createServer(
    {
      maxHeaderSize: HEADERS_MAX_BYTES,
      requestTimeout: resolved.requestTimeoutMs,
      headersTimeout: resolved.requestTimeoutMs,
      connectionsCheckingInterval: LATE_CHECK_MS,
      // Looked at below: Node's own answer has no body.
      requireHostHeader: false,
    },
    (req, res) => {
      replies.set(req.socket, res)
      if (req.headers.host === undefined && req.httpVersion === '1.1') {
        answerRefused(req, res, NO_HOST)
      } else handler(req, res)
    },
  )
  server.maxConnections = resolved.maxConnections
  server.maxHeadersCount = HEADERS_MAX_COUNT
  server.on('checkExpectation', (req, res) => answerRefused(req, res, UNKNOWN_EXPECT))
  server.on('clientError', (error, socket: Socket) =>
    answerBrokenRequest(error, socket, replies.get(socket)),
  )

  return {
    get url() {
      return urlOf(server, resolved)
    },
    handler,
    listen: () => {
      if (closing)
        return Promise.reject(
          new MillraceError('MILLRACE_CLOSED', 'the intake is closed; make a new one'),
        )
      listening ??= listenOn(server, resolved.host, resolved.port)
      return listening
    },
    close: ({ timeoutMs = CLOSE_TIMEOUT_MS } = {}) => {
      closing ??= closeServer(server, listening, (cut) => resolved.clock.after(timeoutMs, cut))
      return closing
    },
  }
}

const NO_HOST: Refusal = {
  status: 400,
  code: 'BAD_REQUEST',
  message: 'a request in HTTP/1.1 has a Host header',
}
const UNKNOWN_EXPECT: Refusal = {
  status: 417,
  code: 'EXPECTATION_FAILED',
  message: 'of Expect only 100-continue is known here',
}

function checkApp(app: unknown): void {
  const missing = ['send', 'sendBatch', 'health'].filter(
    (name) => typeof read(app, name) !== 'function',
  )
  if (missing.length === 0 && Array.isArray(read(app, 'queues'))) return
  throw new OptionsError('intake', [
    `app: expected what createMillrace gives (awaited), got ${show(app)}`,
  ])
}

function listenOn(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: NodeJS.ErrnoException): void => reject(cannotListen(cause, host, port))
    server.once('error', failed)
    server.listen(port, host, () => {
      server.off('error', failed)
      resolve()
    })
  })
}

const notOurs = 'the host is not an address of this machine; correct the option host'
const listenFaults: ReadonlyMap<string, readonly [ErrorCode, string]> = new Map([
  [
    'EADDRINUSE',
    ['MILLRACE_UNAVAILABLE', 'the port is taken; stop what listens there, or choose another port'],
  ],
  ['EACCES', ['MILLRACE_DENIED', 'this account may not open the port; choose one above 1023']],
  ['EADDRNOTAVAIL', ['MILLRACE_INVALID_OPTIONS', notOurs]],
  ['ENOTFOUND', ['MILLRACE_INVALID_OPTIONS', notOurs]],
])

function cannotListen(cause: NodeJS.ErrnoException, host: string, port: number): MillraceError {
  const reason = cause.code ?? 'no reason given'
  const [code, what] = listenFaults.get(reason) ?? ['MILLRACE_UNAVAILABLE', cause.message]
  return new MillraceError(code, `intake cannot listen on ${host}:${port}: ${what} (${reason})`, {
    cause,
    retryable: code === 'MILLRACE_UNAVAILABLE',
    fields: { host, port, reason },
  })
}

async function closeServer(
  server: Server,
  listening: Promise<void> | undefined,
  after: (cut: () => void) => () => void,
): Promise<void> {
  await listening?.catch(() => undefined)
  if (!server.listening) return
  await new Promise<void>((resolve) => {
    const cancel = after(() => server.closeAllConnections())
    server.close(() => {
      cancel()
      resolve()
    })
    server.closeIdleConnections()
  })
}

function urlOf(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): string {
  const address = server.address() as AddressInfo | null
  return `http://${host.includes(':') ? `[${host}]` : host}:${address?.port ?? port}`
}

type Broken = readonly [status: string, code: string, message: string]

const broken: ReadonlyMap<string, Broken> = new Map([
  [
    'ERR_HTTP_REQUEST_TIMEOUT',
    ['408 Request Timeout', 'REQUEST_TIMEOUT', 'the request did not arrive in time'],
  ],
  [
    'HPE_HEADER_OVERFLOW',
    ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE', 'the headers are too large'],
  ],
  [
    'HPE_INVALID_EOF_STATE',
    ['400 Bad Request', 'BAD_REQUEST', 'the request ended before its headers were complete'],
  ],
])
const noHttp: Broken = ['400 Bad Request', 'BAD_REQUEST', 'this is not HTTP']

/** Requests that Node could not read to their end: the answer is written by hand. */
function answerBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: Socket,
  response: ServerResponse | undefined,
): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const isCut = error.code === 'HPE_INVALID_EOF_STATE' && response?.writableFinished === false
  const [status, code, message] = isCut
    ? (['400 Bad Request', ...CUT_BODY] as const)
    : (broken.get(error.code ?? '') ?? noHttp)
  const text = JSON.stringify(refusalBody({ status: Number.parseInt(status, 10), code, message }))
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `x-content-type-options: nosniff\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  )
}
