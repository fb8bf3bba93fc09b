import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Envelope } from '../../src/model/envelope.ts'
import { toWire } from '../../src/transport/wire.ts'
import { headerBytes } from '../../src/transports/kafka/header-bytes.ts'

function envelope(id: string, headers: Record<string, string> = {}): Envelope {
  return { id, body: new Uint8Array(0), headers, priority: 0 }
}

function texts(bytes: ReadonlyMap<Buffer, Buffer>): Record<string, string> {
  return Object.fromEntries([...bytes].map(([name, value]) => [String(name), String(value)]))
}

test('the bytes say what the wire format says, for each message its own', () => {
  const first = envelope('a', { traceparent: '00-1' })
  const second = envelope('b', { traceparent: '00-2' })
  for (const one of [first, second]) {
    assert.deepEqual(texts(headerBytes('orders', one)), toWire('orders', one, 'ce_'))
  }
  assert.equal(texts(headerBytes('bills', first)).ce_type, 'bills')
})

test('names that are different each time do not stay for ever, and none is mistaken for another', () => {
  for (let n = 0; n < 2_500; n += 1) {
    const one = envelope(`${n}`, { [`x-${n}`]: `${n}` })
    assert.deepEqual(texts(headerBytes('orders', one)), toWire('orders', one, 'ce_'))
  }
})
