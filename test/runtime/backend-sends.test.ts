import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import { virtualClock } from 'millrace/testing'
import { pause } from '../../src/model/clock.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { backendSends } from '../../src/runtime/backend-sends.ts'
import { heldLine } from '../../src/runtime/held-line.ts'
import { refused } from '../../src/transport/outcomes.ts'
import type { SendOptions, Transport } from '../../src/transport/transport.ts'

function envelope(id: string, more: Partial<Envelope> = {}): Envelope {
  return { id, body: new Uint8Array([1]), headers: {}, priority: 0, ...more }
}

/** Over memory, where everything is held until somebody's transaction ends. */
async function scene() {
  const clock = virtualClock()
  const closed = new AbortController().signal
  const context = { clock, random: () => 0.5, logger: silentLogger, migrate: 'auto' } as const
  const inner = await memory().connect({ ...context, signal: closed })
  await inner.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], closed)
  const backend = { held: true, calls: [] as { size: number; atomic: boolean | undefined }[] }
  const transport: Transport = {
    ...inner,
    send: async (queue, batch, options: SendOptions) => {
      backend.calls.push({ size: batch.length, atomic: options.atomic })
      if (!backend.held) return inner.send(queue, batch, options)
      await pause(clock, options.lockMs ?? 0)
      return batch.map(() => refused('held'))
    },
  }
  const held = heldLine({ clock, closed })
  const sends = backendSends({ queue: 'q', transport, clock, held, closed })
  return { clock, backend, sends }
}

test('a batch that waits for a held key is all or nothing at each try, and told when it is stored', async () => {
  const { clock, backend, sends } = await scene()
  const batch = ['a', 'b', 'c'].map((id) => envelope(id))
  const sent = sends.many(batch, undefined)
  await clock.advance(3_000)
  assert.equal(sends.size, 3)
  backend.held = false
  await clock.advance(2_000)
  assert.deepEqual(
    await sent,
    batch.map(({ id }) => ({ ok: true, id, duplicate: false })),
  )
  assert.equal(sends.size, 0)
  assert.ok(backend.calls.length >= 3)
  assert.deepEqual(new Set(backend.calls.map(({ size, atomic }) => `${size} ${atomic}`)).size, 1)
  assert.deepEqual(backend.calls[0], { size: 3, atomic: true })
})

test('a send that waits in line is on its way until it is answered', async () => {
  const { clock, backend, sends } = await scene()
  const sent = sends.one(envelope('a', { orderingKey: 'k' }), undefined)
  await clock.advance(3_000)
  assert.equal(sends.size, 1)
  backend.held = false
  await clock.advance(2_000)
  assert.deepEqual([(await sent).ok, sends.size], [true, 0])
})
