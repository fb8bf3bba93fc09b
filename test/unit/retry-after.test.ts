import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRetryAfter, toldDelayMs } from '../../src/model/retry-after.ts'

const now = Date.UTC(2026, 0, 1, 12, 0, 0)
const DAY = 86_400_000

const table: readonly (readonly [string, number | undefined])[] = [
  ['120', 120_000],
  [' 120 ', 120_000],
  ['0', 0],
  ['007', 7_000],
  ['-3', undefined],
  ['+3', undefined],
  ['1.5', undefined],
  ['1e9', undefined],
  ['1000abc', undefined],
  ['0x10', undefined],
  ['', undefined],
  [' ', undefined],
  ['NaN', undefined],
  ['Infinity', undefined],
  ['tomorrow', undefined],
  ['2026-01-01T12:01:00Z', undefined],
  ['120, 60', undefined],
  ['1000000000000000000', DAY],
  ['9'.repeat(60), DAY],
  ['9'.repeat(400), undefined],
  ['Thu, 01 Jan 2026 12:01:30 GMT', 90_000],
  ['Thursday, 01-Jan-26 12:01:30 GMT', 90_000],
  ['Thu Jan  1 12:01:30 2026', 90_000],
  ['Wed, 21 Oct 2099 07:28:00 GMT', DAY],
  ['Thu, 21 Oct 1999 07:28:00 GMT', 0],
  // 50 years ahead, and more than that, which is 1977.
  ['Friday, 01-Jan-76 12:00:00 GMT', DAY],
  ['Saturday, 01-Jan-77 12:00:00 GMT', 0],
  // More than 50 years ahead, so it is 1999.
  ['Thursday, 21-Oct-99 07:28:00 GMT', 0],
  ['Thu, 21 Oct 1999 07:28:00 GMT, Thu, 21 Oct 1999 07:28:00 GMT', undefined],
  ['Thu, 31 Feb 2026 12:00:00 GMT', undefined],
  ['Thu, 01 Jan 2026 24:00:00 GMT', undefined],
  ['Thu, 01 Jan 2026 12:60:00 GMT', undefined],
  // A leap second is the first one of the next minute.
  ['Thu, 01 Jan 2026 12:00:60 GMT', 60_000],
  ['Thu, 01 Jan 2026 12:00:61 GMT', undefined],
  ['Thu, 01 Jan 2026 12:01:30 CET', undefined],
  ['thu, 01 jan 2026 12:01:30 gmt', undefined],
]

test('Retry-After is digits or one of the three HTTP dates, else absent', () => {
  for (const [value, expected] of table) assert.equal(parseRetryAfter(value, now), expected, value)
  assert.equal(parseRetryAfter(undefined, now), undefined)
})

test('headers are read from whatever a client library calls headers', () => {
  for (const headers of [
    new Headers({ 'Retry-After': '7' }),
    new Map([['retry-after', '7']]),
    { 'retry-after': '7' },
    { 'Retry-After': '7' },
    { 'RETRY-AFTER': ['7'] },
    { 'retry-after': 7 },
  ]) {
    assert.equal(toldDelayMs(headers, now), 7_000)
  }
  assert.equal(toldDelayMs({ 'retry-after': ['7', '9'] }, now), undefined)
  assert.equal(toldDelayMs('retry-after: 7', now), undefined)
})

test('rate-limit headers are the second source, in seconds, epoch seconds or epoch ms', () => {
  const soon = now + 30_000
  assert.equal(toldDelayMs({ 'ratelimit-reset': '30' }, now), 30_000)
  assert.equal(toldDelayMs({ 'x-ratelimit-reset': String(soon / 1000) }, now), 30_000)
  assert.equal(toldDelayMs({ 'x-ratelimit-reset': String(soon) }, now), 30_000)
  assert.equal(toldDelayMs({ ratelimit: '"default";r=0;t=30' }, now), 30_000)
  assert.equal(toldDelayMs({ ratelimit: 'limit=100, remaining=0, reset=30' }, now), 30_000)
  assert.equal(toldDelayMs({ 'x-ratelimit-reset': '-1' }, now), undefined)
  assert.equal(toldDelayMs({ 'retry-after': '5', 'ratelimit-reset': '30' }, now), 5_000)
  assert.equal(toldDelayMs({ 'retry-after': 'soon', 'ratelimit-reset': '30' }, now), 30_000)
  const both = { ratelimit: '"default";r=0;t=30', 'ratelimit-reset': '40' }
  assert.equal(toldDelayMs(both, now), 30_000, 'the newer header first')
  assert.equal(toldDelayMs({ 'ratelimit-reset': '1000000000' }, now), 0, 'a moment of 2001')
})
