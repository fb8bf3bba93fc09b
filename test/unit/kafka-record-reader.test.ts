import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as client from '@platformatic/kafka'
import fc from 'fast-check'
import { readBatches } from '../../src/transports/kafka/batches.ts'
import { readRecords } from '../../src/transports/kafka/record-reader.ts'

const text = fc.oneof(
  fc.constantFrom('ce_id', 'ce_type', '__proto__'),
  fc.string({ unit: 'grapheme' }),
)
const message = fc.record({
  topic: fc.constant('t'),
  key: fc.option(fc.string(), { nil: undefined }),
  value: fc.option(fc.uint8Array({ maxLength: 300 }), { nil: undefined }),
  headers: fc.array(fc.tuple(text, text), { maxLength: 5 }),
  // The client writes no step back of more than 24 days as it should.
  timestamp: fc.bigInt({ min: 2n ** 40n, max: 2n ** 40n + 2n ** 30n }),
})
type Message = typeof message extends fc.Arbitrary<infer T> ? T : never

function batchOf(messages: readonly Message[]): Buffer {
  const bytes = messages.map(({ key, value, headers, ...rest }) => ({
    ...rest,
    ...(key === undefined ? {} : { key: Buffer.from(key) }),
    // The client takes nothing else for no value, and a record may have none.
    value: value === undefined ? (undefined as unknown as Buffer) : Buffer.from(value),
    headers: new Map(headers.map(([name, one]) => [Buffer.from(name), Buffer.from(one)])),
  }))
  return Buffer.from(client.createRecordsBatch(bytes).buffer)
}

test('Records are read as the client wrote them, whatever stands in their headers.', () => {
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 8 }), (messages) => {
      const { batches, unreadable } = readBatches(client, batchOf(messages))
      assert.equal(unreadable, undefined)
      const [batch] = batches
      assert.equal(batch?.records.length, messages.length)
      for (const [n, record] of (batch?.records ?? []).entries()) {
        const sent = messages[n]
        assert.ok(sent)
        assert.equal(record.offsetDelta, n)
        assert.equal(Number(batch?.firstTimestamp) + record.timestampDelta, Number(sent.timestamp))
        assert.equal(record.key?.toString(), sent.key)
        const value = record.value === null ? undefined : [...record.value]
        assert.deepEqual(value, sent.value === undefined ? undefined : [...sent.value])
        assert.deepEqual(new Map(Object.entries(record.headers)), new Map(sent.headers))
      }
    }),
  )
})

test('Bytes that are cut off anywhere, or changed, give an error or records, and never take long.', () => {
  const messages = fc.array(message, { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(messages, fc.nat(), fc.nat({ max: 255 }), (some, place, byte) => {
      const records = batchOf(some).subarray(61)
      const cut = records.subarray(0, place % records.length)
      assert.throws(() => readRecords(cut, some.length), RangeError)
      const changed = Buffer.from(records)
      changed[place % records.length] = byte
      try {
        assert.equal(readRecords(changed, some.length).length, some.length)
      } catch (error) {
        assert.ok(error instanceof RangeError, String(error))
      }
    }),
  )
})
