import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { classifyError } from '../../src/model/classify-error.ts'
import { DESCRIPTION_MAX_BYTES, describeError } from '../../src/model/describe-error.ts'
import { parseRetryAfter } from '../../src/model/retry-after.ts'

const now = Date.UTC(2026, 0, 1)
const classes = ['transient', 'permanent', 'throttled']

/** Objects with the fields that rules look at, filled with anything. */
const odd: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 2 },
    fc.anything({
      maxDepth: 1,
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
    }),
    fc.constantFrom(
      '40001',
      '23505',
      'EPIPE',
      'SQLITE_BUSY',
      429,
      503,
      14,
      8,
      'MILLRACE_THROTTLED',
      'TypeError',
    ),
    tie('error'),
  ),
  error: fc.record(
    Object.fromEntries(
      [
        'code',
        'name',
        'message',
        'stack',
        'status',
        'statusCode',
        'headers',
        'response',
        'cause',
        'errors',
        'issues',
        'severity',
        'sqlState',
        'errcode',
        '$metadata',
        '$retryable',
        'details',
        'metadata',
        'statusDetails',
        'retryAfterMs',
        'delayMs',
      ].map((key) => [key, tie('value')]),
    ),
    { requiredKeys: [] },
  ),
})).value

test('any value has a class, a usable delay and a storable record', () => {
  fc.assert(
    fc.property(odd, (error) => {
      const found = classifyError(error, undefined, now)
      assert.ok(classes.includes(found.errorClass))
      assert.ok(typeof found.code === 'string' && found.why.length > 0)
      if (found.delayMs !== undefined)
        assert.ok(Number.isFinite(found.delayMs) && found.delayMs >= 0)
      const record = describeError(error, { at: now, classification: found })
      assert.match(record.code, /^[\w.:-]{1,64}$/)
      const bytes = Buffer.byteLength(record.message) + Buffer.byteLength(record.stack ?? '')
      assert.ok(bytes <= DESCRIPTION_MAX_BYTES)
      assert.ok(!/\0/.test(record.message + record.stack) && record.message.isWellFormed())
    }),
    { numRuns: 500 },
  )
})

test('the class of a status depends on its number and on Retry-After alone', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 300, max: 599 }),
      fc.option(fc.nat(100_000), { nil: undefined }),
      (status, seconds) => {
        const headers = seconds === undefined ? {} : { 'retry-after': String(seconds) }
        const { errorClass, delayMs } = classifyError({ status, headers }, undefined, now)
        const throttled = status === 429 || (status === 503 && seconds !== undefined)
        const transient = status >= 500 || status === 408 || status === 425
        assert.equal(errorClass, throttled ? 'throttled' : transient ? 'transient' : 'permanent')
        const told =
          throttled && seconds !== undefined ? Math.min(seconds * 1000, 86_400_000) : undefined
        assert.equal(delayMs, told)
      },
    ),
  )
})

test('Retry-After is understood as an integer from 0 to 24 h or not at all', () => {
  const text = fc.oneof(
    fc.string(),
    fc.nat().map(String),
    fc.date({ noInvalidDate: true }).map((d) => d.toUTCString()),
  )
  fc.assert(
    fc.property(text, (value) => {
      const ms = parseRetryAfter(value, now)
      if (ms !== undefined) assert.ok(Number.isInteger(ms) && ms >= 0 && ms <= 86_400_000)
    }),
  )
})

test('every HTTP date is read as the moment that it names', () => {
  const soon = fc.integer({ min: 1, max: 86_400 }).map((seconds) => seconds * 1000)
  fc.assert(
    fc.property(soon, (ms) => {
      assert.equal(parseRetryAfter(new Date(now + ms).toUTCString(), now), ms)
    }),
  )
})
