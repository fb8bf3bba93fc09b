import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Envelope } from '../../src/model/envelope.ts'
import { fromWire, hiddenHeader, toWire } from '../../src/transport/wire.ts'

const BODY = new Uint8Array([1])
const PREFIXES = ['ce_', 'ce-', 'cloudEvents_']

test('what goes on the wire comes back, under every prefix', () => {
  const text = fc.string({ minLength: 1, maxLength: 20 })
  const message = fc.record(
    { id: text, idempotencyKey: text, orderingKey: text, headers: fc.dictionary(text, text) },
    { requiredKeys: ['id', 'headers'] },
  )
  fc.assert(
    fc.property(message, fc.constantFrom(...PREFIXES), (fields, prefix) => {
      const envelope: Envelope = { ...fields, body: BODY, priority: 0 }
      fc.pre(hiddenHeader(envelope, prefix) === undefined)
      const { headers, ...rest } = fromWire(toWire('orders', envelope, prefix), prefix)
      const { headers: given, ...expected } = fields
      assert.deepEqual(rest, expected)
      assert.deepEqual({ ...headers }, { ...given })
    }),
  )
})

test('the attributes are those of CloudEvents', () => {
  const envelope: Envelope = {
    id: 'a',
    body: BODY,
    priority: 0,
    headers: { traceparent: '00-1' },
    idempotencyKey: 'k',
    orderingKey: 'o',
  }
  assert.deepEqual(toWire('orders', envelope, 'ce_'), {
    traceparent: '00-1',
    ce_specversion: '1.0',
    ce_id: 'a',
    ce_source: '/millrace',
    ce_type: 'orders',
    ce_idempotencykey: 'k',
    ce_partitionkey: 'o',
  })
})

test('a header that would hide an attribute is named', () => {
  const envelope: Envelope = { id: 'a', body: BODY, priority: 0, headers: { ce_id: 'b' } }
  assert.equal(hiddenHeader(envelope, 'ce_'), 'ce_id')
  assert.equal(hiddenHeader(envelope, 'ce-'), undefined)
})

test('a foreign CloudEvent keeps what it says of itself, a bare message has no id', () => {
  const foreign = { ce_id: 'x', ce_source: '/shop', ce_type: 'order.made', ce_specversion: '1.0' }
  assert.deepEqual(fromWire(foreign, 'ce_'), {
    id: 'x',
    headers: { ce_source: '/shop', ce_type: 'order.made', ce_specversion: '1.0' },
  })
  assert.deepEqual(fromWire({ plain: 'yes' }, 'ce_'), { id: undefined, headers: { plain: 'yes' } })
})
