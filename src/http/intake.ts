import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { MillraceError } from '../model/errors.ts'
import { refusalBody } from './http-error.ts'
import { intakeHandler, type RequestHandler } from './intake-handler.ts'
import { type IntakeApp, type IntakeOptions, resolveIntakeOptions } from './intake-options.ts'

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
  const resolved = resolveIntakeOptions(app, options)
  let closing: Promise<void> | undefined
  let listening: Promise<void> | undefined
  const handler = intakeHandler(app, resolved, () => closing !== undefined)
  const server = createServer(
    {
      maxHeaderSize: HEADERS_MAX_BYTES,
      requestTimeout: resolved.requestTimeoutMs,
      headersTimeout: resolved.requestTimeoutMs,
      connectionsCheckingInterval: LATE_CHECK_MS,
    },
    handler,
  )
  server.maxConnections = resolved.maxConnections
  server.maxHeadersCount = HEADERS_MAX_COUNT
  server.on('clientError', answerBrokenRequest)

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

function listenOn(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: NodeJS.ErrnoException): void => {
      const what =
        cause.code === 'EADDRINUSE' ? 'the port is taken; choose another one' : cause.message
      reject(
        new MillraceError('MILLRACE_CONFIG', `intake cannot listen on ${host}:${port}: ${what}`, {
          cause,
        }),
      )
    }
    server.once('error', failed)
    server.listen(port, host, () => {
      server.off('error', failed)
      resolve()
    })
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

const broken: ReadonlyMap<string, readonly [status: string, code: string, message: string]> =
  new Map([
    [
      'ERR_HTTP_REQUEST_TIMEOUT',
      ['408 Request Timeout', 'REQUEST_TIMEOUT', 'the request did not arrive in time'],
    ],
    [
      'HPE_HEADER_OVERFLOW',
      ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE', 'the headers are too large'],
    ],
  ])

/** Requests that Node could not hand over: there is no response object, so the answer is written by hand. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const [status, code, message] = broken.get(error.code ?? '') ?? [
    '400 Bad Request',
    'BAD_REQUEST',
    'this is not HTTP',
  ]
  const text = JSON.stringify(refusalBody({ status: Number.parseInt(status, 10), code, message }))
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `x-content-type-options: nosniff\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  )
}
