import {
  type Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'

export interface Exchange {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly agent: Agent
  readonly lookup: LookupFunction
  /** Ends the exchange wherever it is; its reason is thrown. */
  readonly signal: AbortSignal
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** The first bytes of the body as text. */
  readonly excerpt: string
}

/** More than this is not read: the connection is closed instead of being used again. */
const BODY_MAX_BYTES = 65_536
const EXCERPT_BYTES = 1_024

/**
 * One request and its response. Once a status is there the receiver has answered: a body that is cut or never ends
 * changes nothing.
 */
export function exchange(options: Exchange): Promise<Reply> {
  const { url, method, headers, body, agent, lookup, signal } = options
  signal.throwIfAborted()
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise<Reply>((resolve, reject) => {
    let answered: Reply | undefined
    const req: ClientRequest = send(url, { method, headers, agent, lookup })
    const abort = (): void => {
      if (answered) resolve(answered)
      else reject(signal.reason)
      req.destroy()
    }
    signal.addEventListener('abort', abort, { once: true })
    req.once('close', () => signal.removeEventListener('abort', abort))
    req.on('error', reject)
    req.once('response', (res) => {
      const reply = { status: res.statusCode ?? 0, headers: res.headers, excerpt: '' }
      answered = reply
      readExcerpt(res, (excerpt) => resolve({ ...reply, excerpt }))
    })
    // A receiver that changes the protocol has answered; Node tells no `response` then, nor anything else.
    req.once('upgrade', (res, socket) => {
      socket.destroy()
      resolve({ status: res.statusCode ?? 0, headers: res.headers, excerpt: '' })
    })
    req.end(body)
  })
}

/** Reads to the end so that the connection can be used again, within bounds; a body cut short is no failure. */
function readExcerpt(res: IncomingMessage, done: (excerpt: string) => void): void {
  const kept: Buffer[] = []
  let [size, keptSize] = [0, 0]
  const finish = (): void => done(Buffer.concat(kept).toString('utf8').slice(0, EXCERPT_BYTES))
  res.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (keptSize < EXCERPT_BYTES) {
      const part = chunk.subarray(0, EXCERPT_BYTES - keptSize)
      kept.push(part)
      keptSize += part.length
    }
    if (size > BODY_MAX_BYTES) res.destroy()
  })
  res.once('error', finish)
  res.once('close', finish)
  res.once('end', finish)
}
