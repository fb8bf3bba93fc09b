import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A receiver of webhooks that fails in every way, so that the example needs no network. */
export interface Receiver {
  readonly url: string
  close(): Promise<void>
}

interface Visit {
  readonly eventId: string
  /** How often this event came to this path, this time included. */
  readonly nth: number
  /** True after POST /repair: what always failed works now. */
  readonly repaired: boolean
}

interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly afterMs?: number
}

const answers = new Map<string, (visit: Visit) => Answer>([
  ['/ok', () => ({ status: 200 })],
  ['/flaky', ({ nth }) => ({ status: nth <= 2 ? 500 : 200 })],
  ['/500', ({ repaired }) => ({ status: repaired ? 200 : 500 })],
  [
    '/429',
    ({ nth }) => (nth <= 2 ? { status: 429, headers: { 'retry-after': '2' } } : { status: 200 }),
  ],
  ['/410', ({ repaired }) => ({ status: repaired ? 200 : 410 })],
  ['/slow', () => ({ status: 200, afterMs: 10_000 })],
])

/** Listens on loopback; `print` gets a line for everything that arrives. Port 0 takes a free one. */
export async function startReceiver(
  port: number,
  print: (line: string) => void,
): Promise<Receiver> {
  const visits = new Map<string, number>()
  let repaired = false
  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    if (path === '/repair') {
      repaired = true
      print('receiver: repaired, /500 and /410 answer 200 from now on')
      send(response, { status: 200 })
      return
    }
    const eventId = String(request.headers['idempotency-key'] ?? 'no key')
    const nth = (visits.get(`${path} ${eventId}`) ?? 0) + 1
    visits.set(`${path} ${eventId}`, nth)
    const answer = answers.get(path)?.({ eventId, nth, repaired }) ?? { status: 404 }
    void readBody(request).then((body) => {
      const told = answer.headers?.['retry-after']
      const extra = told === undefined ? '' : `, Retry-After: ${told}`
      print(
        `receiver: ${request.method} ${path} ${eventId} ${body} (time ${nth}) -> ${answer.status}${extra}`,
      )
      send(response, answer)
    })
  })
  await listen(server, port)
  const { port: actual } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${actual}`, close: () => closeServer(server) }
}

function send(response: ServerResponse, { status, headers = {}, afterMs = 0 }: Answer): void {
  const answer = (): void => {
    response.writeHead(status, { ...headers, 'content-type': 'text/plain' })
    response.end(`${status}\n`)
  }
  const timer = setTimeout(answer, afterMs)
  response.on('close', () => clearTimeout(timer))
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk).slice(0, 200 - text.length)
  return text
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        cause.code === 'EADDRINUSE'
          ? new Error(
              `port ${port} is taken; stop what listens there, or choose another with --receiver-port`,
            )
          : cause,
      ),
    )
    server.listen(port, '127.0.0.1', resolve)
  })
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
