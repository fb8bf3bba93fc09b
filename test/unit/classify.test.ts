import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import {
  MillraceError,
  PermanentError,
  QueueFullError,
  ThrottledError,
  TransientError,
} from 'millrace'
import * as z from 'zod'
import type { Classification } from '../../src/model/classify.ts'
import { classifyError, explainTable } from '../../src/model/classify-error.ts'

const now = Date.UTC(2026, 0, 1)

const classify = (error: unknown): Classification => classifyError(error, undefined, now)
const brief = (error: unknown): string => {
  const { errorClass, code, delayMs } = classify(error)
  return [errorClass, code, ...(delayMs === undefined ? [] : [delayMs])].join(' ')
}
const err = (fields: object, name = 'Error'): Error =>
  Object.assign(new Error('x'), { name }, fields)

const is = (expected: string) => (error: unknown) => {
  assert.equal(brief(error), expected)
  return true
}

const table: readonly (readonly [string, object])[] = [
  // HTTP, in the shapes of fetch wrappers, axios, got and thrown responses.
  ['throttled HTTP_429', err({ status: 429 })],
  ['throttled HTTP_429 7000', err({ status: 429, headers: { 'Retry-After': '7' } })],
  ['throttled HTTP_429 30000', err({ status: 429, headers: { 'ratelimit-reset': '30' } })],
  ['throttled HTTP_429 7000', err({ status: 429, response: { headers: { 'retry-after': '7' } } })],
  ['throttled HTTP_503 7000', err({ statusCode: 503, headers: { 'retry-after': '7' } })],
  [
    'throttled HTTP_503 0',
    err({ status: 503, headers: { 'retry-after': 'Thu, 01 Jan 2015 00:00:00 GMT' } }),
  ],
  ['transient HTTP_503', err({ status: 503 })],
  ['transient HTTP_503', err({ status: 503, headers: { 'retry-after': 'soon' } })],
  ['transient HTTP_503', err({ status: 503, headers: { 'ratelimit-reset': '30' } })],
  ['transient HTTP_408', err({ status: 408 })],
  ['transient HTTP_425', err({ status: 425 })],
  ['transient HTTP_500', err({ response: { status: 500, headers: {} } }, 'AxiosError')],
  ['transient HTTP_599', err({ response: { statusCode: 599 } })],
  ['throttled HTTP_429 7000', err({ status: 429, response: { headers: { 'retry-after': '7' } } })],
  ['permanent HTTP_400', err({ status: 400 })],
  ['permanent HTTP_410', new Response(null, { status: 410 })],
  ['permanent HTTP_301', err({ status: 301 })],
  ['permanent HTTP_499', err({ status: 499 })],
  ['transient Error', err({ status: 200 })],
  ['transient Error', err({ status: 1 })],
  ['transient Error', err({ status: '500' })],
  // fetch, undici, Node.
  ['transient ECONNREFUSED', err({ cause: err({ code: 'ECONNREFUSED' }) }, 'TypeError')],
  ['transient FETCH_FAILED', new TypeError('fetch failed')],
  ['transient UND_ERR_HEADERS_TIMEOUT', err({ code: 'UND_ERR_HEADERS_TIMEOUT' })],
  ['permanent HTTP_404', err({ code: 'UND_ERR_RESPONSE', statusCode: 404 })],
  ['transient AbortError', new DOMException('gone', 'AbortError')],
  ['transient TimeoutError', new DOMException('slow', 'TimeoutError')],
  ['transient EPIPE', err({ code: 'EPIPE' })],
  ['transient EPROTO', err({ code: 'EPROTO' })],
  ['transient EAI_AGAIN', err({ code: 'EAI_AGAIN' })],
  ['transient CERT_HAS_EXPIRED', err({ code: 'CERT_HAS_EXPIRED' })],
  ['transient HPE_INVALID_CONSTANT', err({ code: 'HPE_INVALID_CONSTANT' })],
  ['permanent ERR_INVALID_URL', err({ code: 'ERR_INVALID_URL' }, 'TypeError')],
  ['transient ECONNREFUSED', new AggregateError([err({ code: 'ECONNREFUSED' })])],
  ['transient ENOTFOUND', new AggregateError([err({ status: 404 }), err({ code: 'ENOTFOUND' })])],
  ['permanent HTTP_404', new AggregateError([err({ status: 404 }), err({})])],
  ['throttled HTTP_429', new AggregateError([err({ status: 500 }), err({ status: 429 })])],
  // SQL.
  ['transient 40001', err({ code: '40001', severity: 'ERROR' })],
  ['transient 40P01', err({ code: '40P01', severity: 'ERROR' })],
  ['permanent 40002', err({ code: '40002' })],
  ['transient 55P03', err({ code: '55P03' })],
  ['transient 57P01', err({ code: '57P01' })],
  ['transient 57014', err({ code: '57014' })],
  ['transient 53300', err({ code: '53300' })],
  ['transient 08006', err({ code: '08006' })],
  ['transient XX000', err({ code: 'XX000', severity: 'ERROR' })],
  ['permanent 22P02', err({ code: '22P02' })],
  ['permanent 23505', err({ code: '23505' })],
  ['permanent 42P01', err({ code: '42P01' })],
  ['transient P0001', err({ code: 'P0001', severity: 'ERROR' })],
  ['transient 40001', err({ code: 'ER_LOCK_DEADLOCK', sqlState: '40001' })],
  ['transient ER_LOCK_WAIT_TIMEOUT', err({ code: 'ER_LOCK_WAIT_TIMEOUT', sqlState: 'HY000' })],
  ['transient 40001', err({ cause: err({ code: '40001' }) }, 'DrizzleQueryError')],
  ['transient SQLITE_BUSY_SNAPSHOT', err({ code: 'SQLITE_BUSY_SNAPSHOT' }, 'SqliteError')],
  ['transient SQLITE_FULL', err({ code: 'ERR_SQLITE_ERROR', errcode: 13 })],
  ['transient SQLITE_BUSY', err({ code: 'ERR_SQLITE_ERROR', errcode: 517 })],
  // Cloud.
  [
    'throttled ThrottlingException',
    err({ $metadata: { httpStatusCode: 400 } }, 'ThrottlingException'),
  ],
  [
    'throttled SlowDown 3000',
    err(
      { $metadata: { httpStatusCode: 503 }, $response: { headers: { 'retry-after': '3' } } },
      'SlowDown',
    ),
  ],
  ['throttled Throttling', err({ code: 'Throttling', statusCode: 400 })],
  ['throttled Odd', err({ $metadata: {}, $retryable: { throttling: true } }, 'Odd')],
  ['transient Odd', err({ $metadata: { httpStatusCode: 400 }, $retryable: {} }, 'Odd')],
  ['permanent AccessDenied', err({ $metadata: { httpStatusCode: 403 } }, 'AccessDenied')],
  ['transient InternalFailure', err({ $metadata: { httpStatusCode: 500 } }, 'InternalFailure')],
  [
    'transient ExpiredTokenException',
    err({ $metadata: { httpStatusCode: 400 } }, 'ExpiredTokenException'),
  ],
  ['transient GRPC_UNAVAILABLE', err({ code: 14, details: 'gone' })],
  ['permanent GRPC_NOT_FOUND', err({ code: 5, details: '' })],
  ['transient GRPC_RESOURCE_EXHAUSTED', err({ code: 8, details: 'quota' })],
  [
    'throttled GRPC_RESOURCE_EXHAUSTED 1500',
    err({
      code: 8,
      details: 'q',
      metadata: { get: (k: string) => (k === 'grpc-retry-pushback-ms' ? ['1500'] : []) },
    }),
  ],
  [
    'throttled GRPC_RESOURCE_EXHAUSTED 2500',
    err({
      code: 8,
      details: 'q',
      statusDetails: [{ retryDelay: { seconds: '2', nanos: 500_000_000 } }],
    }),
  ],
  [
    'throttled GRPC_UNAVAILABLE 3000',
    err(
      { code: 14, details: [{ type: 'google.rpc.RetryInfo', debug: { retryDelay: '3s' } }] },
      'ConnectError',
    ),
  ],
  ['transient 5', err({ code: 5 })],
  // Schemas and text.
  ['permanent SCHEMA_ISSUES', err({ issues: [{ message: 'no' }] })],
  ['transient Error', err({ issues: [] })],
  ['permanent SyntaxError', new SyntaxError('x')],
  ['permanent URIError', new URIError('x')],
  ['transient TypeError', new TypeError('x')],
]

test('every kind of failure has its class', () => {
  for (const [expected, error] of table) assert.equal(brief(error), expected)
})

test('our own errors decide by their code, also those of another copy of the package', () => {
  assert.equal(brief(new TransientError('x')), 'transient MILLRACE_TRANSIENT')
  assert.equal(brief(new TransientError('x', { delayMs: 5 })), 'transient MILLRACE_TRANSIENT 5')
  assert.equal(brief(new PermanentError('x')), 'permanent MILLRACE_PERMANENT')
  assert.equal(
    brief(new ThrottledError('x', { retryAfterMs: 5 })),
    'throttled MILLRACE_THROTTLED 5',
  )
  assert.equal(brief(new QueueFullError('q', 1, 5)), 'throttled MILLRACE_QUEUE_FULL 5')
  assert.equal(brief({ code: 'MILLRACE_PERMANENT' }), 'permanent MILLRACE_PERMANENT')
  const status = Object.assign(new MillraceError('MILLRACE_HTTP_STATUS', 'x'), { status: 410 })
  assert.equal(brief(new PermanentError('x', { cause: status })), 'permanent HTTP_410')
})

test('what a handler says outranks what it says as the cause', () => {
  assert.match(brief(new PermanentError('x', { cause: err({ code: 'ECONNRESET' }) })), /^permanent/)
  assert.match(brief(new TransientError('x', { cause: err({ status: 404 }) })), /^transient/)
})

test('errors of real libraries are known', async () => {
  const node = new DatabaseSync(':memory:')
  node.exec('create table t (a integer primary key not null)')
  const better = new Database(':memory:')
  better.exec('create table t (a integer primary key not null); insert into t values (1)')
  const cases: readonly (readonly [string, () => unknown])[] = [
    [
      'permanent SQLITE_CONSTRAINT',
      () => node.exec('insert into t values (1); insert into t values (1)'),
    ],
    ['permanent SQLITE_ERROR', () => node.exec('selct')],
    ['permanent SQLITE_CONSTRAINT_PRIMARYKEY', () => better.exec('insert into t values (1)')],
    ['permanent SyntaxError', () => JSON.parse('{')],
    ['permanent ERR_INVALID_URL', () => new URL('nope')],
    ['permanent SCHEMA_ISSUES', () => z.object({ a: z.string() }).parse({})],
  ]
  for (const [expected, run] of cases) {
    assert.throws(run, is(expected))
  }
  node.close()
  better.close()
  await assert.rejects(fetch('http://127.0.0.1:1'), (e) => classify(e).errorClass === 'transient')
  await assert.rejects(fetch('nope'), is('permanent ERR_INVALID_URL'))
})

test('a value that nobody can read is transient, and classifying it never throws', () => {
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  const circular: { cause?: unknown } = new Error('x')
  circular.cause = circular
  const throwing = new Proxy(
    {},
    {
      get: () => {
        throw new Error('no')
      },
    },
  )
  const endless = (): object => ({
    get cause() {
      return endless()
    },
  })
  const values = [
    undefined,
    null,
    0,
    '',
    'text',
    Symbol('s'),
    10n,
    () => {},
    {},
    [],
    Object.freeze(new Error('x')),
    revoked.proxy,
    circular,
    throwing,
    endless(),
    new Error('\0\ud800'),
    new Error('x'.repeat(10_000_000)),
    {
      get code() {
        throw new Error('no')
      },
    },
    { headers: revoked.proxy, status: 429.5 },
    { errors: revoked.proxy, issues: revoked.proxy },
    {
      code: 8,
      metadata: {
        get() {
          throw new Error('no')
        },
      },
    },
  ]
  for (const value of values) {
    const found = classify(value)
    assert.equal(found.errorClass, 'transient')
    assert.ok(found.why.length > 10)
    assert.match(found.code, /^[\w.:-]{1,64}$/)
  }
})

test("a queue's own rules come first, and nonsense from them falls back with a word about it", () => {
  const custom = (answer: unknown) =>
    classifyError(err({ status: 500 }), () => answer as Classification, now)
  assert.deepEqual(custom({ errorClass: 'permanent', code: 'MINE', why: 'mine' }), {
    errorClass: 'permanent',
    code: 'MINE',
    why: 'mine',
  })
  assert.equal(custom(undefined).code, 'HTTP_500')
  assert.equal(custom({ errorClass: 'throttled', code: 'a b', delayMs: 5 }).delayMs, 5)
  assert.equal(custom({ errorClass: 'throttled', delayMs: Number.NaN }).delayMs, undefined)
  for (const nonsense of ['permanent', 7, {}, { errorClass: 'crashed' }, Promise.resolve()]) {
    const found = custom(nonsense)
    assert.equal(found.errorClass, 'transient')
    assert.match(found.why, /ignored/)
  }
  // Nobody else waits for it, so that it must not end the process when it fails.
  const then = (_: unknown, no: (why: string) => void): void => no('late')
  for (const late of [Promise.reject(new Error('late')), Object({ then })]) {
    const said: string[] = []
    const broken = ({ what }: { readonly what: string }): void => void said.push(what)
    classifyError(err({ status: 500 }), () => late as Classification, now, broken)
    assert.deepEqual(said, ['gave a promise (it must answer at once)'])
  }
  const threw = classifyError(
    err({ status: 404 }),
    () => {
      throw new Error('bug')
    },
    now,
  )
  assert.equal(threw.errorClass, 'permanent')
  assert.match(threw.why, /classify threw and was ignored/)
})

test('a failure that no rule knows says that its class is the default', () => {
  assert.match(classify(new Error('x')).why, /the default/)
  assert.match(classify('text').why, /the default/)
})

test('the printed table has no empty cell and no rule twice', () => {
  const keys = explainTable.map((rule) => `${rule.family} ${rule.match}`)
  assert.equal(new Set(keys).size, keys.length)
  for (const rule of explainTable)
    assert.ok(rule.match && rule.why && rule.errorClass && rule.family)
  assert.equal(explainTable.at(-1)?.family, 'default')
})
