import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { memory } from 'millrace/memory'
import { sqlite } from 'millrace/sqlite'
import { virtualClock } from 'millrace/testing'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector, Subscription, Transport } from '../../src/transport/transport.ts'

const { signal } = new AbortController()
const QUEUE = 'steps'
const NOTE = { actor: 'someone', reason: 'test' }
/** On a clock that stands still only news ends a wait. */
const LONG_MS = 60_000

async function opened(t: TestContext, connector: Connector): Promise<Transport> {
  const transport = await connector.connect({
    ...{ signal, clock: virtualClock(), random: Math.random, logger: silentLogger },
    migrate: 'auto',
  })
  t.after(() => transport.close())
  const onDead = 'halt-key'
  await transport.topology.ensure(
    [{ name: QUEUE, owner: 'team', maxDepth: undefined, onDead }],
    signal,
  )
  await transport.send(
    QUEUE,
    ['A1', 'A2'].map((id) => ({
      ...{ id, body: new Uint8Array([1]), headers: {}, priority: 0 },
      orderingKey: 'A',
    })),
    { signal },
  )
  return transport
}

async function subscribed(t: TestContext, transport: Transport): Promise<Subscription> {
  const from = await transport.subscribe(QUEUE, {
    ...{ group: 'g', leaseMs: LONG_MS, maxInFlight: 10 },
  })
  t.after(() => from.close())
  return from
}

async function file(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
  t.after(() => rm(folder, { recursive: true }))
  return join(folder, 'queue.db')
}

const subjects = {
  memory: async () => memory(),
  sqlite: async (t: TestContext) => sqlite({ file: await file(t), pollMs: 10_000 }),
}

for (const [name, connector] of Object.entries(subjects)) {
  test(`${name}: The discard of the letter that halted a key wakes who waits for the next one.`, {
    timeout: 10_000,
  }, async (t) => {
    const transport = await opened(t, await connector(t))
    const from = await subscribed(t, transport)
    const [head] = await from.receive({ max: 10, waitMs: 0, signal })
    assert.ok(head)
    await from.settle([{ as: 'dead', delivery: head, errorClass: 'permanent', reason: 'no' }])
    const next = from.receive({ max: 10, waitMs: LONG_MS, signal })
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(await transport.shelf?.discard(QUEUE, ['A1'], NOTE), ['A1'])
    assert.deepEqual(
      (await next).map(({ envelope }) => envelope.id),
      ['A2'],
    )
  })

  test(`${name}: A cancelled head wakes who waits for the next one of its key.`, {
    timeout: 10_000,
  }, async (t) => {
    const transport = await opened(t, await connector(t))
    const from = await subscribed(t, transport)
    assert.equal((await from.receive({ max: 10, waitMs: 0, signal })).length, 1)
    const next = from.receive({ max: 10, waitMs: LONG_MS, signal })
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(await transport.browse?.cancel?.(QUEUE, 'A1'), true)
    assert.deepEqual(
      (await next).map(({ envelope }) => envelope.id),
      ['A2'],
    )
  })
}

test('memory: An ack in a transaction wakes who waits for the next one of its key.', {
  timeout: 10_000,
}, async (t) => {
  const connector = memory()
  const transport = await opened(t, connector)
  const from = await subscribed(t, transport)
  const [head] = await from.receive({ max: 10, waitMs: 0, signal })
  assert.ok(head)
  const next = from.receive({ max: 10, waitMs: LONG_MS, signal })
  const tx = connector.begin()
  const acting = await transport.transaction?.(tx)
  assert.deepEqual(await acting?.ack(QUEUE, [head]), [{ ok: true }])
  tx.commit()
  assert.deepEqual(
    (await next).map(({ envelope }) => envelope.id),
    ['A2'],
  )
})
