import { isId } from '../model/ids.ts'
import { isKept } from '../model/kept-text.ts'
import { type Problems, problems, show } from '../model/problems.ts'
import { type Backend, refuseBeyondBackend } from './backend-limits.ts'
import type { SendOptions } from './send.ts'

export const SEND_OPTIONS: readonly string[] = [
  'delayMs',
  'readyAt',
  'priority',
  'idempotencyKey',
  'dedupeKey',
  'orderingKey',
  'headers',
  'tx',
  'id',
  'signal',
]
/** Ten years: long enough for any plan, short enough for every backend's timestamps. */
export const DELAY_MAX_MS = 315_360_000_000
/** The latest moment that a JavaScript Date holds (ECMA-262, time values). */
const READY_AT_MAX = 8_640_000_000_000_000
const HEADERS_MAX = 64
const HEADER_BYTES_MAX = 8_192
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/

/** Options of a send, checked; `undefined` means absent. */
export interface CheckedSendOptions {
  readonly delayMs: number | undefined
  readonly readyAt: number | undefined
  readonly priority: number
  readonly headers: Readonly<Record<string, string>>
}

const nothing: CheckedSendOptions = {
  delayMs: undefined,
  readyAt: undefined,
  priority: 0,
  headers: {},
}

/** @throws MILLRACE_INVALID_OPTIONS with every problem at once. */
export function checkSendOptions(
  options: SendOptions | undefined,
  queue: string,
  backend: Backend,
  index?: number,
): CheckedSendOptions {
  if (options === undefined) return nothing
  const found = problems(
    index === undefined
      ? `send to queue "${queue}"`
      : `payload ${index} of the batch to queue "${queue}"`,
    index === undefined ? {} : { index },
  )
  found.knownKeys(options, SEND_OPTIONS)
  for (const name of ['idempotencyKey', 'dedupeKey', 'orderingKey', 'id'] as const) {
    const value: unknown = options[name]
    if (value !== undefined && (typeof value !== 'string' || !isId(value))) {
      found.add(
        `${name}: expected 1 to 255 printable ASCII characters without spaces, got ${show(value)}`,
      )
    }
  }
  found.optionalSignal('signal', options.signal)
  const checked = {
    ...checkTimes(options, found),
    priority: found.number('priority', options.priority, { min: 0, max: 9, default: 0 }),
    headers: checkHeaders(options.headers, found),
  }
  // By the checked values: what no backend takes is said once.
  refuseBeyondBackend({ ...options, ...checked }, backend, found)
  found.throwIfAny()
  return checked
}

function checkTimes(
  options: SendOptions,
  found: Problems,
): Pick<CheckedSendOptions, 'delayMs' | 'readyAt'> {
  const { delayMs, readyAt } = options
  if (delayMs !== undefined && readyAt !== undefined) {
    found.add('delayMs and readyAt: give one of them, they say the same thing in two ways')
  }
  const at = readyAt instanceof Date ? readyAt.getTime() : readyAt
  return {
    delayMs:
      delayMs === undefined
        ? undefined
        : Math.ceil(
            found.number('delayMs', delayMs, { min: 0, max: DELAY_MAX_MS, integer: false }),
          ),
    readyAt:
      at === undefined
        ? undefined
        : Math.ceil(found.number('readyAt', at, { min: 0, max: READY_AT_MAX, integer: false })),
  }
}

function checkHeaders(
  headers: SendOptions['headers'],
  found: Problems,
): Readonly<Record<string, string>> {
  if (headers === undefined) return nothing.headers
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers) {
    found.add(`headers: expected an object of strings, got ${show(headers)}`)
    return nothing.headers
  }
  const entries = Object.entries(headers)
  if (entries.length > HEADERS_MAX) {
    found.add(`headers: expected at most ${HEADERS_MAX}, got ${entries.length}`)
  }
  const checked: Record<string, string> = {}
  let bytes = 0
  for (const [given, value] of entries) {
    const name = given.toLowerCase()
    const problem = headerProblem(name, value)
    if (problem !== undefined) found.add(`headers[${show(given)}]: ${problem}`)
    else if (Object.hasOwn(checked, name)) {
      found.add(`headers[${show(given)}]: "${name}" is there twice, as names are lower-cased`)
    } else {
      checked[name] = value
      bytes += name.length + Buffer.byteLength(value)
    }
  }
  if (bytes > HEADER_BYTES_MAX) {
    found.add(`headers: expected at most ${HEADER_BYTES_MAX} bytes in all, got ${bytes}`)
  }
  return checked
}

function headerProblem(name: string, value: unknown): string | undefined {
  // Writing it would set the prototype, and the header would be gone without a word.
  if (name === '__proto__') return 'cannot be a header'
  if (!HEADER_NAME.test(name)) return 'expected a name of 1 to 128 HTTP token characters'
  if (name.startsWith('millrace-')) return 'names that start with "millrace-" are reserved'
  if (typeof value !== 'string') return `expected a string, got ${show(value)}`
  return isKept(value) ? undefined : 'expected text without NUL and lone surrogates'
}
