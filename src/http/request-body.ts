import type { IncomingMessage } from 'node:http'
import { InexactNumberError, parseExactJson } from '../model/exact-json.ts'
import { refuse } from './http-error.ts'

/** Code and message for a sender that stopped in the middle of its body. */
export const CUT_BODY: readonly [code: string, message: string] = [
  'INCOMPLETE_BODY',
  'the request ended before its body was complete',
]

/** A body that is too large is read on for this many times its limit, so that its sender can read the answer. */
const DISCARD_FACTOR = 16

/**
 * The body of a request as a JSON value. Time is bounded by the server's requestTimeout, size by `maxBytes`.
 * @throws RequestRefused 400, 413, 415, 422, 500
 */
export async function readJson(req: IncomingMessage, maxBytes: number): Promise<unknown> {
  checkMediaType(req)
  checkUntouched(req)
  const bytes = await readBytes(req, maxBytes)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw refuse(400, 'MALFORMED_JSON', 'the body is not UTF-8 text')
  }
  try {
    return parseExactJson(text)
  } catch (error) {
    if (error instanceof InexactNumberError)
      throw refuse(422, 'MILLRACE_UNSERIALIZABLE_PAYLOAD', error.message)
    // The parser's own message quotes the body, which may hold secrets.
    throw refuse(400, 'MALFORMED_JSON', 'the body is not JSON')
  }
}

function checkMediaType(req: IncomingMessage): void {
  const [type = '', ...parameters] = (req.headers['content-type'] ?? '')
    .toLowerCase()
    .split(';')
    .map((s) => s.trim())
  const charset = parameters
    .find((p) => p.startsWith('charset='))
    ?.slice(8)
    .replaceAll('"', '')
  const isJson = type === 'application/json' || /^application\/[\w.-]+\+json$/.test(type)
  if (!isJson || (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')) {
    throw refuse(415, 'UNSUPPORTED_MEDIA_TYPE', 'send content-type: application/json, in UTF-8')
  }
  const encoding = req.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw refuse(415, 'UNSUPPORTED_MEDIA_TYPE', 'send the body without content-encoding')
  }
}

/** Whoever had a part of the body, or has it decoded as text, leaves none that could be trusted to be what was sent. */
function checkUntouched(req: IncomingMessage): void {
  const isRead = req.readableEnded || req.readableDidRead
  if (!isRead && req.readableEncoding === null) return
  throw refuse(
    500,
    'BODY_ALREADY_READ',
    `the body was ${isRead ? 'read' : 'given an encoding'} before the intake got the request, and nothing was stored; ` +
      'in the server, mount the intake before what reads bodies, as express.json() does',
  )
}

function readBytes(req: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) {
    discard(req, maxBytes * DISCARD_FACTOR)
    return Promise.reject(tooLarge(maxBytes))
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const take = (chunk: Buffer): void => {
      size += chunk.length
      if (size <= maxBytes) {
        chunks.push(chunk)
        return
      }
      req.off('data', take)
      discard(req, maxBytes * DISCARD_FACTOR)
      reject(tooLarge(maxBytes))
    }
    req.on('data', take)
    req.once('end', () => resolve(Buffer.concat(chunks)))
    const cut = (): void => reject(refuse(400, ...CUT_BODY))
    req.once('error', cut)
    req.once('close', cut)
  })
}

function tooLarge(maxBytes: number): Error {
  const message = `the body has more than ${maxBytes} bytes; keep it elsewhere and send a reference`
  return refuse(413, 'BODY_TOO_LARGE', message, { connection: 'close' })
}

function discard(req: IncomingMessage, maxBytes: number): void {
  let size = 0
  req.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > maxBytes) req.destroy()
  })
  req.resume()
}
