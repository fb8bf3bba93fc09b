import type { Classification } from './classify.ts'
import type { Rule } from './classify-rule.ts'
import { headerOf } from './header.ts'
import { read, readInteger } from './probe.ts'
import { parseRetryAfter, toldDelayMs } from './retry-after.ts'

interface StatusRule {
  readonly from: number
  readonly to: number
  readonly match: string
  readonly errorClass: Classification['errorClass']
  readonly why: string
  /** Only when a Retry-After header can be understood. */
  readonly needsRetryAfter?: boolean
}

/** The first match decides. 2xx is no failure, and 1xx is no answer. */
const rules: readonly StatusRule[] = [
  {
    from: 429,
    to: 429,
    match: '429',
    errorClass: 'throttled',
    why: 'the receiver asks to slow down',
  },
  {
    from: 503,
    to: 503,
    match: '503 with Retry-After',
    errorClass: 'throttled',
    needsRetryAfter: true,
    why: 'the receiver is away and said for how long',
  },
  {
    from: 408,
    to: 408,
    match: '408',
    errorClass: 'transient',
    why: 'the receiver waited too long',
  },
  {
    from: 425,
    to: 425,
    match: '425',
    errorClass: 'transient',
    why: 'the receiver wants it again outside of early data',
  },
  {
    from: 500,
    to: 599,
    match: 'other 5xx',
    errorClass: 'transient',
    why: 'the receiver failed, the request may be right',
  },
  {
    from: 400,
    to: 499,
    match: 'other 4xx',
    errorClass: 'permanent',
    why: 'the receiver refused this request and will refuse it again',
  },
  {
    from: 300,
    to: 399,
    match: '3xx',
    errorClass: 'permanent',
    why: 'the receiver moved; redirects are not followed, correct the address',
  },
]

export const httpTable: readonly Rule[] = rules.map(({ match, errorClass, why }) => ({
  family: 'HTTP',
  match,
  errorClass,
  why,
}))

/** What a response status means; undefined for 1xx, 2xx and numbers that are no status. */
export function classifyStatus(
  status: number,
  headers: unknown,
  now: number,
): Classification | undefined {
  const rule = rules.find(
    (r) => status >= r.from && status <= r.to && (!r.needsRetryAfter || saysWhen(headers, now)),
  )
  if (!rule) return undefined
  const found = { errorClass: rule.errorClass, code: `HTTP_${status}`, why: rule.why }
  const delayMs = rule.errorClass === 'throttled' ? toldDelayMs(headers, now) : undefined
  return delayMs === undefined ? found : { ...found, delayMs }
}

function saysWhen(headers: unknown, now: number): boolean {
  return parseRetryAfter(headerOf(headers, 'retry-after'), now) !== undefined
}

/** Errors of HTTP clients (status, statusCode, response.status…) and thrown responses. */
export function classifyHttp(error: unknown, now: number): Classification | undefined {
  return fromCarrier(error, now) ?? fromCarrier(read(error, 'response'), now)
}

function fromCarrier(carrier: unknown, now: number): Classification | undefined {
  const status = readInteger(carrier, 'status') ?? readInteger(carrier, 'statusCode')
  if (status === undefined) return undefined
  const headers = read(carrier, 'headers') ?? read(read(carrier, 'response'), 'headers')
  return classifyStatus(status, headers, now)
}
