import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hasCode } from 'millrace'
import { canonicalJson, fingerprint } from '../../src/codec/canonical.ts'
import { jsonCodec } from '../../src/codec/json.ts'

const json = fc.jsonValue()
const text = fc.string({ unit: fc.nat(0xffff).map((n) => String.fromCharCode(n)) })
const tree = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(true, false, -0),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(text, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  ),
})).value

const trip = (value: unknown): unknown => jsonCodec.decode(jsonCodec.encode(value))

test('every JSON value arrives as it was sent, bit for bit', () => {
  fc.assert(
    fc.property(fc.oneof(json, tree), (value) => assert.deepStrictEqual(trip(value), value)),
    {
      numRuns: 1_000,
    },
  )
})

test('anything else arrives in a form that arrives unchanged, or is refused at encode', () => {
  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withTypedArray: true,
    withBoxedValues: true,
    withNullPrototype: true,
    withSparseArray: true,
  })
  fc.assert(
    fc.property(anything, (value) => {
      let arrived: unknown
      try {
        arrived = trip(value)
      } catch (error) {
        assert.ok(hasCode(error, 'MILLRACE_UNSERIALIZABLE_PAYLOAD'), String(error))
        return
      }
      assert.deepStrictEqual(trip(arrived), arrived)
    }),
    { numRuns: 2_000 },
  )
})

test('what a schema is shown at send is what the receiver decodes, and the bytes are the same', () => {
  const anything = fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true })
  const odd = fc.oneof(json, tree, anything, fc.dictionary(text, fc.oneof(tree, anything)))
  fc.assert(
    fc.property(odd, (value) => {
      let bytes: Uint8Array
      try {
        bytes = jsonCodec.encode(value)
      } catch (error) {
        assert.throws(() => jsonCodec.encodeDecoded?.(value), error as Error)
        return
      }
      const both = jsonCodec.encodeDecoded?.(value)
      assert.deepStrictEqual(both?.bytes, bytes)
      assert.deepStrictEqual(both?.decoded, jsonCodec.decode(bytes))
    }),
    { numRuns: 3_000 },
  )
})

test('the fingerprint depends on the value, not on the order of its keys', () => {
  fc.assert(
    fc.property(tree, tree, (a, b) => {
      assert.equal(fingerprint(shuffled(a)), fingerprint(a))
      assert.equal(canonicalJson(trip(a)), canonicalJson(a))
      assert.equal(fingerprint(a) === fingerprint(b), canonicalJson(a) === canonicalJson(b))
    }),
  )
})

test('different JSON values have different canonical forms', () => {
  fc.assert(
    fc.property(tree, tree, (a, b) => {
      const same =
        JSON.stringify(JSON.parse(canonicalJson(a))) ===
        JSON.stringify(JSON.parse(canonicalJson(b)))
      assert.equal(canonicalJson(a) === canonicalJson(b), same)
    }),
  )
})

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, shuffled(member)]),
  )
}
