import { headerOf } from './header.ts'
import { THROTTLE_LIMIT_MS } from './retry.ts'

const DAYS = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const LONG_DAYS = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day'
const MONTHS: readonly string[] = [
  'Jan',
  'Feb',
  'Mar',
  'Apr',
  'May',
  'Jun',
  'Jul',
  'Aug',
  'Sep',
  'Oct',
  'Nov',
  'Dec',
]
const MONTH = `(?<month>${MONTHS.join('|')})`
const TIME = '(?<hour>\\d{2}):(?<minute>\\d{2}):(?<second>\\d{2})'

/** The three forms of RFC 9110, section 5.6.7. Date.parse takes far more: `-3` is a day in 2001 to it. */
const FORMS: readonly RegExp[] = [
  new RegExp(`^${DAYS}, (?<day>\\d{2}) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  new RegExp(`^${LONG_DAYS}, (?<day>\\d{2})-${MONTH}-(?<year>\\d{2}) ${TIME} GMT$`),
  new RegExp(`^${DAYS} ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
]

/** Longer than any of the forms; anything above is not looked at. */
const VALUE_MAX = 64

/**
 * The wait that a Retry-After value asks for, in ms from `now`, 0 to 24 h; a date in the past is 0. Digits or one of the
 * three HTTP date forms, else undefined (as if it were absent).
 */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined || value.length > VALUE_MAX) return undefined
  const text = value.replace(/^[ \t]+|[ \t]+$/g, '')
  if (/^\d+$/.test(text)) return bounded(Number(text) * 1000)
  const date = parseHttpDate(text, now)
  return date === undefined ? undefined : bounded(date - now)
}

/** Epoch ms of an HTTP date in one of its three forms, or undefined. `now` places two-digit years. */
function parseHttpDate(text: string, now: number): number | undefined {
  for (const form of FORMS) {
    const parts = form.exec(text)?.groups
    if (parts) return fromParts(parts, now)
  }
  return undefined
}

function fromParts(parts: Record<string, string>, now: number): number | undefined {
  const month = MONTHS.indexOf(parts.month ?? '')
  const day = Number(parts.day)
  const year = fullYear(parts.year ?? '', now)
  const [hour, minute, second] = [Number(parts.hour), Number(parts.minute), Number(parts.second)]
  if (hour > 23 || minute > 59 || second > 60) return undefined
  const midnight = Date.UTC(year, month, day)
  // Date.UTC rolls 31 February over into March; a rolled day is no date.
  if (new Date(midnight).getUTCDate() !== day) return undefined
  return midnight + ((hour * 60 + minute) * 60 + second) * 1000
}

/** A two-digit year that seems more than 50 years ahead is the last one past with these digits (RFC 9110). */
function fullYear(digits: string, now: number): number {
  if (digits.length === 4) return Number(digits)
  const thisYear = new Date(now).getUTCFullYear()
  const year = Math.floor(thisYear / 100) * 100 + Number(digits)
  return year > thisYear + 50 ? year - 100 : year
}

/**
 * The wait that a response asks for: Retry-After, else the rate-limit headers (`RateLimit`, `RateLimit-Reset`,
 * `X-RateLimit-Reset`). In ms, 0 to 24 h; undefined when none of them says anything that can be understood.
 */
export function toldDelayMs(headers: unknown, now: number): number | undefined {
  return (
    parseRetryAfter(headerOf(headers, 'retry-after'), now) ??
    parseRateLimit(headerOf(headers, 'ratelimit')) ??
    parseReset(headerOf(headers, 'ratelimit-reset'), now) ??
    parseReset(headerOf(headers, 'x-ratelimit-reset'), now)
  )
}

/** `"default";r=0;t=30` and the older `limit=100, remaining=0, reset=30`. */
function parseRateLimit(value: string | undefined): number | undefined {
  if (value === undefined || value.length > 1024) return undefined
  const seconds = /[;,] ?(?:t|reset)=(\d{1,15})(?=[;, ]|$)/.exec(value)?.[1]
  return seconds === undefined ? undefined : bounded(Number(seconds) * 1000)
}

/** Seconds; or, because well-known services send that, epoch seconds or epoch ms, told apart by their size. */
function parseReset(value: string | undefined, now: number): number | undefined {
  const text = value?.trim()
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined
  const n = Number(text)
  if (n >= 1e12) return bounded(n - now)
  if (n >= 1e9) return bounded(n * 1000 - now)
  return bounded(n * 1000)
}

function bounded(ms: number): number {
  return Math.max(0, Math.min(ms, THROTTLE_LIMIT_MS))
}
