import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { InexactNumberError, parseExactJson } from '../../src/model/exact-json.ts'

test('A number that JavaScript would change is refused where it stands, and not quoted.', () => {
  for (const number of [
    '9007199254740993',
    '-9007199254740993',
    '12345678901234567890',
    '18446744073709551616',
    '1e999',
    '-1E400',
    '1e+999',
    '1.5E+400',
  ]) {
    const text = `{"id":[${number}]}`
    assert.throws(
      () => parseExactJson(text),
      (error: Error) => {
        assert.ok(error instanceof InexactNumberError)
        assert.match(error.message, / at character 7 cannot be kept/)
        assert.ok(!error.message.includes(number))
        return true
      },
      number,
    )
  }
})

test('Numbers that are kept, fractions, and digits in strings are taken.', () => {
  for (const text of [
    '9007199254740991',
    '10000000000000000',
    '0.12345678901234567890',
    '1e308',
    '1e-999',
    '1E+021',
    '"12345678901234567890"',
    '{"12345678901234567890":"a\\\\\\" 12345678901234567890"}',
    '"\\\\" ',
  ]) {
    assert.deepEqual(parseExactJson(text), JSON.parse(text), text)
  }
  assert.throws(() => parseExactJson('{"a":9007199254740993'), SyntaxError)
})

test('Whatever JSON.stringify writes is taken as it was.', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value)
      assert.deepEqual(parseExactJson(text), JSON.parse(text))
    }),
  )
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      assert.equal(parseExactJson(JSON.stringify(value)), value === 0 ? 0 : value)
    }),
  )
})
