import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type } from 'arktype'
import { hasCode, InvalidPayloadError } from 'millrace'
import * as v from 'valibot'
import * as z from 'zod'
import { canonicalJson, fingerprint } from '../../src/codec/canonical.ts'
import { jsonCodec } from '../../src/codec/json.ts'
import { ISSUES_MAX, validate } from '../../src/codec/validate.ts'

const trip = (value: unknown): unknown => jsonCodec.decode(jsonCodec.encode(value))
const refused = (value: unknown, message: RegExp, path: string): void => {
  assert.throws(
    () => jsonCodec.encode(value),
    (error: Error & { fields?: { path?: string } }) => {
      assert.ok(hasCode(error, 'MILLRACE_UNSERIALIZABLE_PAYLOAD'), String(error))
      assert.match(error.message, message)
      assert.equal(error.fields?.path, path)
      return true
    },
  )
}

test('JSON values round-trip, with NUL, lone surrogates, minus zero and odd keys', () => {
  const values = [
    null,
    true,
    '',
    0,
    -0,
    1e308,
    5e-324,
    2 ** 53,
    'a\0b',
    '\ud800',
    '\udc00\ud800',
    '€😀',
    [],
    {},
    [[]],
    [null],
    { a: { b: [1, 'two', null, { c: false }] } },
    { 'a\0': 1, '': 2, ' ': 3, '\ud800': 4 },
    { n: -0, m: [0, -0] },
    JSON.parse('{"__proto__":{"polluted":true},"constructor":1}'),
  ]
  for (const value of values) assert.deepStrictEqual(trip(value), value)
  assert.equal(({} as { polluted?: boolean }).polluted, undefined)
})

test('JSON.rawJSON travels only where its text is what JavaScript writes for its value', () => {
  const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): object }
  const digits = /JSON\.rawJSON .*send it as a string/
  const otherwise = [
    '12345678901234567890',
    '0.1234567890123456789',
    '1.50',
    '1e999',
    '1e2',
    '"\\u0061"',
  ]
  for (const text of otherwise) refused({ a: [rawJSON(text)] }, digits, 'a[0]')
  refused(rawJSON('9007199254740993'), digits, '')
  refused({ a: { toJSON: () => rawJSON('9007199254740993') } }, digits, 'a')
  assert.throws(() => jsonCodec.encodeDecoded?.({ a: rawJSON('9007199254740993') }), digits)
  const same = ['12', '1.5', 'null', 'true', '"a"', '9007199254740991'].map((text) => rawJSON(text))
  assert.deepStrictEqual(trip(same), [12, 1.5, null, true, 'a', 9_007_199_254_740_991])
})

test('what JSON changes by design arrives in its JSON form', () => {
  const when = new Date(0)
  assert.deepStrictEqual(trip({ when, gone: undefined }), { when: '1970-01-01T00:00:00.000Z' })
  assert.deepStrictEqual(trip(Object.assign([1], { gone: undefined })), [1])
  assert.deepStrictEqual(trip(Object.assign([1], { toJSON: () => 'own' })), 'own')
  assert.deepStrictEqual(trip({ url: new URL('http://a.test/') }), { url: 'http://a.test/' })
  class Money {
    amount = 1
  }
  assert.deepStrictEqual(trip([new Money()]), [{ amount: 1 }])
  assert.deepStrictEqual(trip({ n: new Number(1), s: new String('s') }), { n: 1, s: 's' })
  assert.deepStrictEqual(trip(Object.assign(Object.create(null), { a: 1 })), { a: 1 })
})

test('what JSON would lose in silence is refused with its path', () => {
  const cycle: { self?: unknown } = {}
  cycle.self = { back: cycle }
  let deep: unknown = 1
  for (let i = 0; i < 10_000; i++) deep = [deep]
  refused(undefined, /payload cannot travel as JSON: it is undefined/, '')
  refused({ items: [1, { price: 10n }] }, /payload\.items\[1\]\.price .* BigInt/, 'items[1].price')
  refused({ a: Number.NaN }, /NaN/, 'a')
  refused({ a: new Number(Number.NaN) }, /NaN/, 'a')
  refused([Number.POSITIVE_INFINITY], /Infinity/, '[0]')
  refused([undefined], /undefined/, '[0]')
  refused(new Array(1), /undefined/, '[0]')
  refused(Object.assign([1], { x: 2 }), /a property of an array/, 'x')
  refused({ a: [Object.assign([], { x: 0 })] }, /a property of an array/, 'a[0].x')
  refused({ found: /b/.exec('abc') }, /a property of an array/, 'found.index')
  refused({ f() {} }, /a function/, 'f')
  refused({ 'odd key': Symbol('s') }, /a symbol/, '["odd key"]')
  refused(cycle, /a cycle/, 'self.back')
  refused({ m: new Map([[1, 2]]) }, /a Map/, 'm')
  refused({ s: new Set() }, /a Set/, 's')
  refused({ b: new Uint8Array(1) }, /bytes/, 'b')
  refused({ b: Buffer.from('x') }, /bytes/, 'b')
  refused({ e: Object.assign(new Error('x'), { code: 'E' }) }, /an Error/, 'e')
  refused({ d: new Date(Number.NaN) }, /an invalid Date/, 'd')
  refused({ h: new Headers({ a: 'b' }) }, /a Headers without fields/, 'h')
  refused({ r: /x/ }, /a RegExp without fields/, 'r')
  refused({ p: Promise.resolve() }, /a Promise without fields/, 'p')
  refused({ j: { toJSON: () => 1n } }, /BigInt/, 'j')
  refused(
    {
      get a() {
        throw new Error('no')
      },
    },
    /threw/,
    '',
  )
  refused(
    {
      t: {
        toJSON() {
          throw new Error('no')
        },
      },
    },
    /threw/,
    '',
  )
  assert.throws(() => jsonCodec.encode(deep), /nested deeper than 1000 levels/)
})

test('a thousand levels travel, and no more, whichever way they are written', () => {
  const nested = (levels: number, around: (inner: unknown) => unknown): unknown => {
    let value: unknown = around('core')
    for (let i = 1; i < levels; i++) value = around(value)
    return value
  }
  for (const around of [
    (v: unknown) => [v],
    (v: unknown) => ({ v }),
    (v: unknown) => ({ v, at: new Date(0) }),
  ]) {
    const deepest = nested(1_000, around)
    assert.deepEqual(jsonCodec.encode(deepest), jsonCodec.encodeDecoded?.(deepest).bytes)
    assert.match(fingerprint(jsonCodec.encodeDecoded?.(deepest).decoded), /./)
    const deeper = nested(1_001, around)
    const tooDeep = (error: unknown): boolean => /deeper than 1000 levels/.test(String(error))
    assert.throws(() => jsonCodec.encode(deeper), tooDeep)
    assert.throws(() => jsonCodec.encodeDecoded?.(deeper), tooDeep)
  }
})

test('the same object twice is no cycle', () => {
  const shared = { a: 1 }
  assert.deepStrictEqual(trip({ x: shared, y: [shared, -0] }), { x: shared, y: [shared, -0] })
})

test('a schema is shown nothing that the receiver will not see, and nothing that it could change for the sender', () => {
  const symbol = Symbol('hidden')
  const hidden = Object.defineProperty({ a: 1 }, 'b', { value: 2, enumerable: false })
  const named = Object.defineProperty({ a: 1 }, 'toJSON', {
    value: () => 'text',
    enumerable: false,
  })
  const written = Object.assign([1, 2], { toJSON: () => 'items' })
  let reads = 0
  const lying = {
    get a() {
      reads += 1
      return reads
    },
  }
  class Rows extends Array<number> {
    toJSON(): string {
      return 'rows'
    }
  }
  const values: readonly unknown[] = [
    { a: 1, [symbol]: 2 },
    hidden,
    named,
    written,
    Rows.of(1, 2),
    JSON.parse('{ "__proto__": { "a": 1 } }'),
    { a: undefined, b: new Date(0), c: { toJSON: () => 1 } },
    lying,
  ]
  for (const value of values) {
    const both = jsonCodec.encodeDecoded?.(value)
    assert.deepStrictEqual(both?.decoded, jsonCodec.decode(both?.bytes ?? new Uint8Array()))
    if (value !== lying) assert.deepStrictEqual(both?.bytes, jsonCodec.encode(value))
  }
  const payload = { list: [{ n: 1 }] }
  const { decoded } = jsonCodec.encodeDecoded?.(payload) ?? {}
  assert.deepStrictEqual(decoded, payload)
  assert.notEqual((decoded as typeof payload).list[0], payload.list[0])
})

test('an object that everything inherits toJSON from is written by it', () => {
  const prototype: { toJSON?: unknown } = Object.prototype
  prototype.toJSON = () => 'patched'
  try {
    const both = jsonCodec.encodeDecoded?.({ a: 1 })
    assert.equal(both?.decoded, 'patched')
  } finally {
    delete prototype.toJSON
  }
})

test('what everything inherits is not sent with it', () => {
  const prototype: { everywhere?: unknown } = Object.prototype
  prototype.everywhere = 'patched'
  try {
    const both = jsonCodec.encodeDecoded?.({ a: 1 })
    assert.equal(String(both?.bytes), '{"a":1}')
    assert.deepEqual(Object.keys(Object(both?.decoded)), ['a'])
  } finally {
    delete prototype.everywhere
  }
})

test('bytes that are no JSON in UTF-8 are a SyntaxError at decode', () => {
  const bodies = [
    Buffer.from('{'),
    Buffer.from(''),
    Buffer.from([0x22, 0xff, 0x22]),
    Buffer.from('\ufeff1'),
  ]
  for (const body of bodies) assert.throws(() => jsonCodec.decode(body), SyntaxError)
})

test('the canonical form does not depend on the order of keys or on how a number was written', () => {
  const value = JSON.parse('{"b":[1,1.0,1e2,-0,"€\\u0000"],"a":{"z":null,"é":true,"A":"\\ud800"}}')
  assert.equal(
    canonicalJson(value),
    '{"a":{"A":"\\ud800","z":null,"é":true},"b":[1,1,100,0,"€\\u0000"]}',
  )
  assert.equal(canonicalJson({ b: 1, a: undefined }), '{"b":1}')
  assert.notEqual(canonicalJson({ a: 1n }), canonicalJson({ a: 1 }))
  assert.equal(canonicalJson(new Date(5)), 'Date(5)')
  assert.notEqual(canonicalJson(new Date(5)), canonicalJson('Date(5)'))
  assert.notEqual(canonicalJson(new Map([[1, 2]])), canonicalJson(new Set([1, 2])))
  assert.notEqual(canonicalJson(new Set([1, 2])), canonicalJson([1, 2]))
})

test('fingerprints never change: stores remember them across versions', () => {
  // sha256 of the canonical text, checked with sha256sum.
  assert.equal(
    fingerprint({ b: 2, a: 1 }),
    '43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777',
  )
  assert.equal(fingerprint({ a: 1, b: 2 }), fingerprint({ b: 2, a: 1 }))
  assert.equal(
    fingerprint(null),
    '74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b',
  )
  assert.equal(
    fingerprint(new Uint8Array()),
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  )
  const cycle: unknown[] = []
  cycle.push(cycle)
  assert.throws(
    () => fingerprint(cycle),
    (e) => hasCode(e, 'MILLRACE_UNSERIALIZABLE_PAYLOAD'),
  )
})

test('validation is synchronous with a synchronous schema, whichever library made it', () => {
  const schemas = [
    z.object({ items: z.array(z.object({ price: z.number() })) }),
    v.object({ items: v.array(v.object({ price: v.number() })) }),
    type({ items: type({ price: 'number' }).array() }),
  ]
  for (const schema of schemas) {
    const good = validate(schema, { items: [{ price: 1 }] })
    assert.deepEqual(good, { value: { items: [{ price: 1 }] } })
    const bad = validate(schema, { items: [{ price: 1 }, { price: 'x' }] })
    assert.ok('issues' in bad && bad.issues.length === 1)
    assert.equal(bad.issues[0]?.path, 'items[1].price')
    assert.ok(bad.issues[0].message)
  }
})

test('validation waits for an asynchronous schema and gives the output of transforms', async () => {
  const schema = z.string().transform(async (text) => text.length)
  const outcome = validate(schema, 'abc')
  assert.ok(outcome instanceof Promise)
  assert.deepEqual(await outcome, { value: 3 })
})

test('issues are bounded in number and size', () => {
  const issues = Array.from({ length: 1_000 }, () => ({
    message: 'm'.repeat(10_000),
    path: Array(500).fill('k'),
  }))
  const schema = {
    '~standard': { version: 1, vendor: 'test', validate: () => ({ issues }) },
  } as const
  const outcome = validate(schema, 0)
  assert.ok('issues' in outcome)
  assert.equal(outcome.issues.length, ISSUES_MAX)
  assert.ok(JSON.stringify(outcome).length < 50 * 1_000)
  const empty = {
    '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [] }) },
  } as const
  assert.deepEqual(validate(empty, 0), { issues: [{ message: 'refused by the schema', path: '' }] })
})

test('an invalid payload says what is wrong in one line', () => {
  const issue = (n: number) => ({ message: `wrong ${n}`, path: `f${n}` })
  const error = new InvalidPayloadError('mail', [1, 2, 3, 4, 5].map(issue), 7)
  assert.equal(
    error.message,
    'payload 7 of the batch for queue "mail" does not fit its schema: f1: wrong 1; f2: wrong 2; f3: wrong 3; and 2 more',
  )
  assert.equal(error.index, 7)
  assert.equal(error.toJSON().code, 'MILLRACE_INVALID_PAYLOAD')
})
