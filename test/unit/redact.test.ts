import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DESCRIPTION_MAX_BYTES, describeError } from '../../src/model/describe-error.ts'
import { cutToBytes, printable, redact } from '../../src/model/redact.ts'

const options = { at: 5, classification: { errorClass: 'transient', code: 'X' } } as const
const describe = (error: unknown) => describeError(error, options)
const size = (record: { message: string; stack?: string }): number =>
  Buffer.byteLength(record.message) + Buffer.byteLength(record.stack ?? '')

test('secrets are taken out of text in every place where errors put them', () => {
  const texts = [
    'connect postgres://user:s3cr3t@db/app',
    'connect postgres://user:a@s3cr3t@db/app',
    'GET https://hook.test/in?a=1&access_token=s3cr3t&b=2 failed',
    'https://bucket.test/x?X-Amz-Signature=s3cr3t',
    'https://hook.test/?key=s3cr3t#frag',
    'Authorization: Bearer s3cr3t',
    'authorization: s3cr3t',
    "headers: { Authorization: 'Bearer s3cr3t' }",
    '{"authorization":"Bearer s3cr3t"}',
    "[ 'authorization', 'Bearer s3cr3t' ]",
    'Proxy-Authorization: Basic s3cr3tzzzz',
    'sent Bearer s3cr3t to the host',
    'Basic dXNlcjpzM2NyM3Q=s3cr3t'.replace('=s3cr3t', ' '),
    'Cookie: sid=s3cr3t; other=s3cr3t',
    'set-cookie: sid=s3cr3t; HttpOnly',
    'password=s3cr3t host=db',
    '{"password":"a\\"s3cr3t"}',
    '{"user":{"clientSecret": "s3cr3t"}}',
    '{\\"token\\":\\"s3cr3t\\"}',
    '"token":"s3cr3t',
    'apiKey: s3cr3t',
    'x-api-key: s3cr3t',
    'DB_PASSWORD=s3cr3t',
    'key sk_live_s3cr3tAAAA used',
    'whsec_s3cr3tAAAAAAAA',
    'ghp_s3cr3tAAAAAAAAAAAAAAAA',
    'eyJhbGciOiJIUzI1NiJ9.s3cr3t.abc',
    '-----BEGIN RSA PRIVATE KEY-----\ns3cr3t\n-----END RSA PRIVATE KEY-----',
  ]
  for (const text of texts) {
    const left = redact(text)
    assert.ok(!left.includes('s3cr3t') && !left.includes('dXNlcj'), left)
    assert.match(left, /\[redacted\]/)
    assert.equal(redact(left).includes('s3cr3t'), false)
  }
})

test('ordinary text is left alone', () => {
  const texts = [
    'connect ECONNREFUSED 127.0.0.1:4001',
    `Unexpected token 'x', "xyz" is not valid JSON`,
    'bearer token is missing',
    'Basic auth is required',
    'GET https://hook.test/a?page=2 answered 500',
    'mail to user@example.test failed at 12:30',
    '    at run (file:///app/src/worker.ts:10:5)',
  ]
  for (const text of texts) assert.equal(redact(text), text)
})

test('what surrounds a secret stays readable', () => {
  assert.equal(redact('postgres://u:p@db/app'), 'postgres://[redacted]@db/app')
  assert.equal(
    redact('https://h/x?a=1&access_token=t&b=2'),
    'https://h/x?a=1&access_token=[redacted]&b=2',
  )
  assert.equal(redact('password=p, user=x'), 'password=[redacted], user=x')
})

test('text is printable and cut between characters', () => {
  assert.equal(printable('a\0b\ud800c\x1b[31m\n\t'), 'a\u2400b\ufffdc\u241b[31m\n\t')
  assert.equal(cutToBytes('abc', 3), 'abc')
  assert.equal(cutToBytes('abcd', 4), 'abcd')
  assert.equal(cutToBytes('äöüß', 7), 'äö…')
  assert.equal(cutToBytes('😀😀', 7), '😀…')
})

test('a record keeps message, frames and causes, and nothing else of the error', () => {
  const error = new TypeError('fetch failed https://u:s3cr3t@h/', {
    cause: Object.assign(new Error('connect refused, token=s3cr3t'), { code: 'ECONNREFUSED' }),
  })
  Object.assign(error, {
    config: { headers: { Authorization: 'Bearer s3cr3t' } },
    request: { s3cr3t: 1 },
  })
  const record = describe(error)
  assert.deepEqual(Object.keys(record), ['at', 'errorClass', 'code', 'message', 'stack'])
  assert.equal(record.message, 'fetch failed https://[redacted]@h/')
  assert.match(record.stack ?? '', /^TypeError: fetch failed[^\n]+\n {4}at .*redact\.test\.ts/)
  assert.match(record.stack ?? '', /caused by Error: connect refused, token=\[redacted\]$/)
  assert.ok(!JSON.stringify(record).includes('s3cr3t'))
})

test('of a chain of causes the first three are kept', () => {
  const chain = [5, 4, 3, 2, 1].reduce<Error | undefined>(
    (cause, n) => new Error(`cause ${n}`, { cause }),
    undefined,
  )
  const { stack = '' } = describe(new Error('no luck', { cause: chain }))
  assert.deepEqual(stack.match(/caused by Error: cause \d/g), [
    'caused by Error: cause 1',
    'caused by Error: cause 2',
    'caused by Error: cause 3',
  ])
})

test('a control character inside of a secret does not hide it', () => {
  const { message } = describe(new Error('call failed, token=s3\u000bcr3t'))
  assert.ok(!message.includes('cr3t'), message)
})

test('the frames of a stack are redacted and bounded like the message', () => {
  const frames = '    at load (file:///app/tenant.js?token=s3cr3t:1:1)\n'.repeat(200)
  const error = new Error('no luck, password=s3cr3t\n    at the second line, password=s3cr3t')
  error.name = 'Error password=s3cr3t'
  error.stack = `${error.name}: ${error.message}\n${frames}`
  const { stack = '' } = describe(error)
  assert.match(stack, /\n {4}at load \(file:\/\/\/app\/tenant\.js\?token=\[redacted\]/)
  assert.ok(!stack.includes('s3cr3t'))
  assert.ok(Buffer.byteLength(stack) <= 256 + 1 + 2_048, String(Buffer.byteLength(stack)))
  // A message that was changed later is not found in the stack; what stands there is redacted all the same.
  error.message = 'something else'
  assert.ok(!describe(error).stack?.includes('s3cr3t'))
})

test('a record is at most 8 kB, whatever the error', () => {
  const huge = new Error('€'.repeat(10_000_000))
  const record = describe(huge)
  assert.ok(size(record) <= DESCRIPTION_MAX_BYTES, String(size(record)))
  assert.match(record.stack ?? '', /\n {4}at /)
  // Its causes take what the message leaves, counted in bytes.
  const caused = ['a', 'b', 'c', 'd'].reduce<Error>(
    (cause) => new Error('€'.repeat(10_000), { cause }),
    new Error('€'),
  )
  assert.ok(size(describe(caused)) <= DESCRIPTION_MAX_BYTES, String(size(describe(caused))))
  const stack = Object.assign(new Error('x'), {
    stack: `Error: x\n    at ${'y'.repeat(100_000_000)}`,
  })
  assert.ok(size(describe(stack)) <= DESCRIPTION_MAX_BYTES)
})

test('describing an error always succeeds', () => {
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  const circular: { cause?: unknown } = new Error('x')
  circular.cause = circular
  const values: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /undefined was thrown/],
    [null, /null/],
    [Symbol('s'), /Symbol\(s\)/],
    ['text', /^text$/],
    [10n, /10/],
    [() => {}, /a function/],
    [{}, /cannot be read/],
    [revoked.proxy, /cannot be read/],
    [circular, /^x$/],
    [new Error('a\0\ud800'), /^a\u2400\ufffd$/],
    [Object.freeze(new Error('x')), /^x$/],
    [
      {
        get message() {
          throw new Error('no')
        },
      },
      /cannot be read/,
    ],
    [new Error(''), /^Error without a message$/],
    [{ code: 'ECONNRESET' }, /^ECONNRESET without a message$/],
    [{ code: 42, name: 'Odd' }, /^42 without a message$/],
    [{ name: 'Odd' }, /^Odd without a message$/],
    [
      {
        message: {
          toString() {
            throw new Error('no')
          },
        },
      },
      /cannot be read/,
    ],
    [{ status: 410 }, /^status 410$/],
  ]
  for (const [value, expected] of values) assert.match(describe(value).message, expected)
})

test('a text of a megabyte is cut before it is looked at', () => {
  assert.equal(redact('x'.repeat(1_000_000)).length, 32_768)
})
