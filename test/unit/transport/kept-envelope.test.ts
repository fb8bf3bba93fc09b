import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptEnvelope } from '../../../src/transport/kept-envelope.ts'

test('what is kept of an envelope does not change with what its sender does to it later', () => {
  for (const body of [Buffer.from('abc'), new TextEncoder().encode('abc')]) {
    const headers: Record<string, string> = { tenant: 'a' }
    const kept = keptEnvelope({ id: 'm', body, headers, priority: 0, delayMs: 5 })
    body[0] = 0
    headers.tenant = 'b'
    assert.deepEqual(
      { ...kept, body: Buffer.from(kept.body).toString() },
      {
        id: 'm',
        body: 'abc',
        headers: { tenant: 'a' },
        priority: 0,
      },
    )
  }
  const keyed = { id: 'm', body: new Uint8Array(), headers: {}, priority: 9 }
  const keys = { idempotencyKey: 'k', orderingKey: 'o' }
  assert.deepEqual(keptEnvelope({ ...keyed, ...keys, readyAt: 1 }), { ...keyed, ...keys })
})
