import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue } from 'millrace'
import { memory } from 'millrace/memory'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { pause, systemClock } from '../../../src/model/clock.ts'
import type { Envelope } from '../../../src/model/envelope.ts'
import { silentLogger } from '../../../src/model/logger.ts'
import type { Transport } from '../../../src/transport/transport.ts'

const signal = new AbortController().signal
const clock = virtualClock()
const context = { signal, clock, random: () => 0.5, logger: silentLogger, migrate: 'auto' } as const
const subscribeOptions = { group: 'g', leaseMs: 30_000, maxInFlight: 10 } as const

async function connected(): Promise<Transport> {
  const transport = await memory().connect(context)
  await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  return transport
}

function envelopes(count: number): Envelope[] {
  const body = new Uint8Array(1)
  return Array.from({ length: count }, (_, at) => ({
    id: `m${at}`,
    body,
    headers: {},
    priority: 0,
  }))
}

test('One connector always reaches the same store, two connectors never do.', async () => {
  assert.throws(() => memory({ nam: 'a' } as object), /unknown option "nam", did you mean "name"/)
  assert.throws(() => memory({ name: 5 as never }), /memory: name: expected a text, got 5/)
  const [one, two] = [memory({ name: 'a' }), memory({ name: 'a' })]
  const [first, second, stranger] = await Promise.all(
    [one, one, two].map((connector) => connector.connect(context)),
  )
  assert.ok(first && second && stranger)
  await first.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  await first.send('q', envelopes(1), { signal })
  assert.equal((await second.browse?.gauge('q'))?.depth, 1)
  await assert.rejects(async () => stranger.browse?.gauge('q'), { code: 'MILLRACE_UNKNOWN_QUEUE' })
})

test('What the sender changes after the send does not reach the store.', async () => {
  const transport = await connected()
  const body = new Uint8Array([1])
  const headers = { a: '1' }
  await transport.send('q', [{ id: 'm', body, headers, priority: 0 }], { signal })
  body[0] = 2
  headers.a = '2'
  const stored = await transport.browse?.get?.('q', 'm')
  assert.deepEqual([stored?.envelope.body[0], stored?.envelope.headers.a], [1, '1'])
})

test('An envelope that nothing could be done with is refused as invalid.', async () => {
  const transport = await connected()
  const [good] = envelopes(1)
  assert.ok(good)
  const bad: Partial<Envelope>[] = [
    { id: '' },
    { id: 'with space' },
    { id: 'x'.repeat(256) },
    { priority: 10 },
    { priority: -1 },
    { priority: 1.5 },
    { delayMs: -1 },
    { delayMs: Number.NaN },
    { delayMs: 1e18 },
    { readyAt: Number.NaN },
    { delayMs: 1, readyAt: 1 },
  ]
  const sent = await transport.send(
    'q',
    bad.map((fields) => ({ ...good, ...fields })),
    { signal },
  )
  for (const [at, outcome] of sent.entries()) {
    assert.equal(!outcome.ok && outcome.fault.code, 'invalid', JSON.stringify(bad[at]))
  }
  assert.equal((await transport.browse?.gauge('q'))?.depth, 0)
})

test('A receive that ended leaves no timer behind.', async () => {
  const transport = await connected()
  const subscription = await transport.subscribe('q', subscribeOptions)
  const waiting = subscription.receive({ max: 1, waitMs: 60_000, signal })
  await clock.advance(1)
  assert.notEqual(clock.nextDueAt(), undefined)
  await transport.send('q', envelopes(1), { signal })
  assert.equal((await waiting).length, 1)
  assert.equal(clock.nextDueAt(), undefined)
})

test('A transaction whose key was taken meanwhile is rolled back as a whole.', async () => {
  const connector = memory()
  const transport = await connector.connect(context)
  await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  const remember = (fingerprint: string): Pick<Envelope, 'remember'> => ({
    remember: [{ kind: 'idempotency', key: 'k', fingerprint, windowMs: 1_000 }],
  })
  const [first, second, third] = envelopes(3)
  assert.ok(first && second && third)
  const tx = connector.begin()
  const inside = await transport.transaction?.(tx)
  assert.ok(inside)
  await inside.send('q', [first, { ...second, ...remember('mine') }])
  await transport.send('q', [{ ...third, ...remember('theirs') }], { signal })
  assert.throws(() => tx.commit(), { code: 'MILLRACE_BACKEND_FAULT', retryable: true })
  assert.equal((await transport.browse?.gauge('q'))?.depth, 1)
})

test('A transaction that has ended is no transaction any more.', async () => {
  const connector = memory()
  const transport = await connector.connect(context)
  const tx = connector.begin()
  assert.ok(await transport.transaction?.(tx))
  tx.rollback()
  tx.commit()
  assert.equal(await transport.transaction?.(tx), undefined)
})

test('A chain of messages that never ends lets timers and signals have their turn.', async () => {
  const steps = defineQueue({ name: 'steps', owner: 'team-test', payload: z.number() })
  const app = await createMillrace({ transport: memory(), queues: [steps], logger: silentLogger })
  let ran = 0
  app.work(steps, async (message, ctx) => {
    ran++
    // Without its turn the timer below never fires, and the test would not end.
    if (ran > 50_000) throw new Error('no timer fired')
    await ctx.send(steps, message.payload + 1)
  })
  await app.start()
  await app.send(steps, 1)
  await pause(systemClock(), 1)
  await app.close({ timeoutMs: 0 })
  assert.ok(ran > 0 && ran < 50_000, `${ran} runs before a timer fired`)
})
