import type { Classification } from './classify.ts'
import type { AttemptRecord } from './history.ts'
import { read, readString, safeCode } from './probe.ts'
import { cutToBytes, printable, redact } from './redact.ts'

/** Message and stack together, in bytes of UTF-8. */
export const DESCRIPTION_MAX_BYTES = 8_192

const MESSAGE_MAX_BYTES = 4_096
const HEAD_MAX_BYTES = 256
/** Enough for any name and its frames; redaction needs a little more than what is kept. */
const LOOKED_AT_MAX = 16_384
const CAUSES_MAX = 3
/** Node keeps ten frames by default, which is less than this. */
const FRAMES_MAX_BYTES = 2_048

export interface DescribeOptions {
  /** Epoch ms. */
  readonly at: number
  readonly classification: Pick<Classification, 'errorClass' | 'code'>
}

/**
 * What is remembered of a failed attempt: the class and code of its classification, the error's message and stack, and
 * the names and messages of its causes (at the end of the stack). Nothing else of the error is looked at, so that a
 * client's request, with its headers, never gets into a record. Redacted, at most 8 kB; never throws, whatever the
 * value.
 */
export function describeError(error: unknown, options: DescribeOptions): AttemptRecord {
  const base = {
    at: options.at,
    errorClass: options.classification.errorClass,
    code: safeCode(options.classification.code) ?? 'UNKNOWN',
  }
  try {
    const message = cutToBytes(clean(messageOf(error)), MESSAGE_MAX_BYTES)
    const stack = stackOf(error, message)
    if (stack === undefined) return { ...base, message }
    const leftBytes = DESCRIPTION_MAX_BYTES - Buffer.byteLength(message)
    return { ...base, message, stack: cutToBytes(stack, leftBytes) }
  } catch {
    return { ...base, message: UNREADABLE }
  }
}

const UNREADABLE = 'an error that cannot be read'

/** The redacted message of any thrown value, on its own. */
export function messageOfError(error: unknown): string {
  try {
    return cutToBytes(clean(messageOf(error)), MESSAGE_MAX_BYTES)
  } catch {
    return UNREADABLE
  }
}

function messageOf(error: unknown): string {
  if (typeof error === 'string') return error
  if (error === undefined) return 'undefined was thrown'
  if (typeof error === 'function') return 'a function was thrown'
  if (typeof error !== 'object' || error === null) return String(error)
  const message = readString(error, 'message')
  if (message !== undefined && message !== '') return message
  const status = read(error, 'status')
  if (typeof status === 'number') return `status ${status}`
  // Many throw a plain object with a code, and an AggregateError of connections has nothing else.
  const known = safeCode(read(error, 'code')) ?? readString(error, 'name')
  return known === undefined ? UNREADABLE : `${known} without a message`
}

function stackOf(error: unknown, message: string): string | undefined {
  const stack = readString(error, 'stack')
  if (stack === undefined) return undefined
  const name = readString(error, 'name') ?? 'Error'
  const head = cutToBytes(`${clean(name)}: ${message.split('\n', 1)[0]}`, HEAD_MAX_BYTES)
  const frames = cutToBytes(
    clean(framesOf(stack, readString(error, 'message') ?? '')),
    FRAMES_MAX_BYTES,
  )
  return [head, frames, ...causesOf(error)].filter((part) => part !== '').join('\n')
}

/** The lines below name and message; a message of 10 MB would otherwise push them out. */
function framesOf(stack: string, message: string): string {
  const start = message === '' ? 0 : stack.indexOf(message)
  const rest = start < 0 || start > HEAD_MAX_BYTES ? stack : stack.slice(start + message.length)
  const first = rest.indexOf('\n    at ')
  return first < 0 ? '' : rest.slice(first + 1, first + 1 + LOOKED_AT_MAX)
}

function causesOf(error: unknown): readonly string[] {
  const lines: string[] = []
  let cause = read(error, 'cause')
  while (cause !== undefined && cause !== null && lines.length < CAUSES_MAX) {
    const name = readString(cause, 'name') ?? 'cause'
    const text = `caused by ${name}: ${messageOf(cause).slice(0, LOOKED_AT_MAX)}`
    lines.push(cutToBytes(clean(text), MESSAGE_MAX_BYTES / CAUSES_MAX))
    cause = read(cause, 'cause')
  }
  return lines
}

/** Cut, made printable, redacted, in this order: a control inside of a secret must not hide it. */
function clean(text: string): string {
  return redact(printable(text.slice(0, LOOKED_AT_MAX)))
}
