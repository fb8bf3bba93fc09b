import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Envelope } from '../../src/model/envelope.ts'
import { stored } from '../../src/transport/outcomes.ts'
import { sendApart } from '../../src/transports/postgres/send-apart.ts'

function envelope(id: string, more: Partial<Envelope> = {}): Envelope {
  return { id, body: new Uint8Array(), headers: {}, priority: 0, ...more }
}

test('sent apart, those of one ordering key stay together in their order, and each outcome finds its place', async () => {
  const remember = [{ kind: 'dedupe', key: 'd', fingerprint: undefined, windowMs: 1_000 }] as const
  const batch = [
    envelope('a1', { orderingKey: 'a', remember }),
    envelope('plain'),
    envelope('b1', { orderingKey: 'b' }),
    envelope('a2', { orderingKey: 'a' }),
    envelope('keyed', { remember }),
    envelope('a3', { orderingKey: 'a', remember }),
  ]
  const parts: string[][] = []
  const outcomes = await sendApart(batch, async (part) => {
    parts.push(part.map(({ id }) => id))
    return part.map(({ id }) => stored(id))
  })
  assert.deepEqual(parts, [['plain'], ['keyed'], ['a1', 'a2', 'a3'], ['b1']])
  assert.deepEqual(
    outcomes,
    batch.map(({ id }) => stored(id)),
  )
})
