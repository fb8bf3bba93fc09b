import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  createMillrace,
  defineQueue,
  type MillraceOptions,
  PermanentError,
  TransientError,
} from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import type { Connector, Transport } from '../../src/transport/transport.ts'
import { until } from '../transports/until.ts'

const base = {
  name: 'steps',
  owner: 'team-orders',
  payload: z.object({ of: z.string(), n: z.number() }),
}
const retry = { attempts: 3, baseMs: 20, maxMs: 40 }
const orderingKey = ({ of }: { readonly of: string }): string => of
const going = defineQueue({ ...base, retry, orderingKey, onDead: 'continue' })
const halting = defineQueue({ ...base, retry, orderingKey, onDead: 'halt-key' })

type Queue = typeof going

/** `A2`: the second of key A. */
function steps(
  ...names: readonly string[]
): readonly { readonly of: string; readonly n: number }[] {
  return names.map((name) => ({ of: name.slice(0, 1), n: Number(name.slice(1)) }))
}

async function appFor(t: TestContext, queue: Queue, options: Partial<MillraceOptions> = {}) {
  const app = await createMillrace({ transport: memory(), queues: [queue], ...options })
  t.after(() => app.close({ timeoutMs: 0 }))
  return app
}

type App = Awaited<ReturnType<typeof appFor>>

/** Starts a worker whose handler fails as `fail` says; answers what succeeded, in that order. */
async function worked(
  app: App,
  queue: Queue,
  fail: (name: string, attempt: number) => Error | undefined,
): Promise<readonly string[]> {
  const done: string[] = []
  app.work(
    queue,
    async ({ payload: { of, n }, attempt }) => {
      const error = fail(`${of}${n}`, attempt)
      if (error !== undefined) throw error
      done.push(`${of}${n}`)
    },
    { concurrency: 10 },
  )
  await app.start()
  return done
}

const ofKey = (done: readonly string[], key: string): readonly string[] =>
  done.filter((name) => name.startsWith(key))

test('a failed message keeps its key waiting and no other, and no attempt of a successor is spent', async (t) => {
  const app = await appFor(t, going)
  await app.sendBatch(going, steps('A1', 'A2', 'B1', 'A3', 'B2'))
  const attempts: string[] = []
  const done = await worked(app, going, (name, attempt) => {
    attempts.push(`${name}.${attempt}`)
    return name === 'A2' && attempt < 3 ? new TransientError('not yet') : undefined
  })
  await until('all done', () => done.length === 5)
  assert.deepEqual(ofKey(done, 'A'), ['A1', 'A2', 'A3'])
  assert.deepEqual(ofKey(done, 'B'), ['B1', 'B2'])
  assert.ok(done.indexOf('B2') < done.indexOf('A2'), `B waited for A: ${done}`)
  assert.deepEqual(
    attempts.filter((one) => one.startsWith('A3')),
    ['A3.1'],
  )
})

test('a key that always fails stops nobody else, and nothing of theirs dies', async (t) => {
  const app = await appFor(t, going)
  const keys = [...'ABCDEFGHIJK']
  await app.sendBatch(
    going,
    Array.from({ length: 10 }, (_, n) => keys.map((of) => ({ of, n }))).flat(),
  )
  const done = await worked(app, going, (name) =>
    name.startsWith('A') ? new TransientError('down') : undefined,
  )
  await until('all others done', () => done.length === 100)
  for (const key of keys.slice(1)) {
    assert.deepEqual(
      ofKey(done, key),
      Array.from({ length: 10 }, (_, n) => `${key}${n}`),
    )
  }
  await until('all of A dead', async () => (await app.admin.stats(going)).dead === 10)
  const { items } = await app.admin.deadLetters.list(going)
  assert.deepEqual(
    new Set(items.map(({ payload }) => JSON.stringify(payload).slice(0, 8))),
    new Set(['{"of":"A']),
  )
})

test('a thousand keys at concurrency 10 are each handled in order', async (t) => {
  const app = await appFor(t, going)
  const sent = Array.from({ length: 5 }, (_, n) =>
    Array.from({ length: 1_000 }, (_, key) => ({ of: `k${key}`, n })),
  ).flat()
  await app.sendBatch(going, sent)
  const last = new Map<string, number>()
  let overtaken = 0
  app.work(
    going,
    async ({ payload: { of, n } }) => {
      if (n !== (last.get(of) ?? -1) + 1) overtaken += 1
      last.set(of, n)
    },
    { concurrency: 10 },
  )
  await app.start()
  await until('all done', async () => (await app.admin.stats(going)).depth === 0)
  assert.equal(overtaken, 0)
  assert.equal(last.size, 1_000)
})

test('under halt-key a death halts its key, which is listed, shown, and resumed from its dead letter on', async (t) => {
  const app = await appFor(t, halting)
  await app.sendBatch(halting, steps('A1', 'A2', 'B1', 'A3'))
  let isMended = false
  const done = await worked(app, halting, (name) =>
    name === 'A1' && !isMended ? new PermanentError('no such account') : undefined,
  )
  await until('A halted', async () => (await app.admin.keys.list(halting)).items.length === 1)
  await until('B done', () => done.includes('B1'))
  const halted = await app.admin.keys.show(halting, 'A')
  assert.ok(halted)
  assert.equal(halted.waiting, 2)
  const letter = await app.admin.deadLetters.show(halting, halted.messageId)
  assert.deepEqual(letter?.payload, { of: 'A', n: 1 })
  assert.equal(await app.admin.keys.show(halting, 'B'), null)
  assert.deepEqual(done, ['B1'])
  isMended = true
  const moved = await app.admin.keys.resume(halting, { keys: ['A', 'B'], reason: 'mended' })
  assert.deepEqual(moved, { moved: ['A'], notFound: ['B'] })
  await until('all done', () => done.length === 4)
  assert.deepEqual(ofKey(done, 'A'), ['A1', 'A2', 'A3'])
  const [audit] = await app.admin.deadLetters.audit(halting)
  assert.deepEqual([audit?.act, audit?.reason], ['redrive', 'mended'])
})

test('a halted key that is skipped goes on without its dead letter', async (t) => {
  const app = await appFor(t, halting)
  await app.sendBatch(halting, steps('A1', 'A2'))
  const done = await worked(app, halting, (name) =>
    name === 'A1' ? new PermanentError('no such account') : undefined,
  )
  await until('A halted', async () => (await app.admin.keys.show(halting, 'A')) !== null)
  const { items, cursor } = await app.admin.keys.list(halting, { limit: 1 })
  assert.deepEqual([items.length, cursor], [1, null])
  assert.deepEqual(await app.admin.keys.skip(halting, { keys: ['A'] }), {
    moved: ['A'],
    notFound: [],
  })
  await until('A2 done', () => done.includes('A2'))
  assert.equal((await app.admin.stats(halting)).dead, 1)
  const [audit] = await app.admin.deadLetters.audit(halting)
  assert.deepEqual([audit?.act, audit?.messageId], ['skip', items[0]?.messageId])
})

test('what is wrong with the options of keys is said, all at once', async (t) => {
  const app = await appFor(t, halting)
  await assert.rejects(
    app.admin.keys.skip(halting, { keys: 'A', reason: 7, why: 'x' } as never),
    (error: Error) =>
      /keys: expected a list.*reason: expected a text/s.test(error.message) &&
      /why/.test(error.message),
  )
  await assert.rejects(app.admin.keys.list(halting, { limit: 0 }), /limit/)
})

test('a queue with an ordering key names what a death does, and nothing else takes onDead', () => {
  assert.throws(
    () => defineQueue({ ...base, orderingKey } as never),
    /onDead: with orderingKey expected "continue" .* or "halt-key" .*, got undefined/,
  )
  assert.throws(
    () => defineQueue({ ...base, onDead: 'halt-key' } as never),
    /onDead: has no meaning without orderingKey/,
  )
  assert.throws(
    () => defineQueue({ ...base, delayed: 'wait' } as never),
    /delayed: has no meaning without orderingKey/,
  )
  assert.throws(() => defineQueue({ ...base, orderingKey, onDead: 'halt' } as never), /got "halt"/)
})

test('a payload without an ordering key is refused before anything is stored', async (t) => {
  const queue = defineQueue({ ...base, orderingKey: ({ of }) => of.trim(), onDead: 'continue' })
  const app = await appFor(t, queue)
  await assert.rejects(app.send(queue, { of: ' ', n: 1 }), {
    code: 'MILLRACE_INVALID_PAYLOAD',
    message:
      'payload for queue "steps" has no ordering key: orderingKey of queue "steps" gave "", expected 1 to 255 printable ASCII characters without spaces',
  })
  assert.equal((await app.admin.stats(queue)).depth, 0)
})

test('an ordering key that the sender names spares the function of the queue', async (t) => {
  const queue = defineQueue({
    ...base,
    orderingKey: () => {
      throw new Error('never asked')
    },
    onDead: 'continue',
  })
  const app = await appFor(t, queue)
  await app.send(queue, { of: 'A', n: 1 }, { orderingKey: 'mine' })
  await assert.rejects(app.send(queue, { of: 'A', n: 2 }), /never asked/)
  assert.equal((await app.admin.stats(queue)).depth, 1)
})

test('a delay is refused on a queue in order, or its key waits where the queue says so', async (t) => {
  const app = await appFor(t, going)
  await assert.rejects(
    app.send(going, { of: 'A', n: 1 }, { delayMs: 1_000 }),
    /delayMs: the queue keeps its keys in order, .* or define the queue with delayed: 'wait'/,
  )
  const waiting = defineQueue({ ...base, orderingKey, onDead: 'continue', delayed: 'wait' })
  const other = await appFor(t, waiting)
  await other.send(waiting, { of: 'A', n: 1 }, { delayMs: 100 })
  await other.sendBatch(waiting, steps('A2', 'B1'))
  const done = await worked(other, waiting, () => undefined)
  await until('all done', () => done.length === 3)
  assert.deepEqual(done, ['B1', 'A1', 'A2'])
})

function named(name: string, weaken: (inner: Transport) => Transport): Connector {
  const below = memory()
  return { name, connect: async (context) => weaken(await below.connect(context)) }
}

test('start-up refuses an order that the transport cannot keep, every queue at once, with what can', async () => {
  const unordered = (name: string): Connector =>
    named(name, ({ haltedKeys: _, ...inner }) => ({
      ...inner,
      name,
      traits: { ...inner.traits, order: 'none' },
    }))
  const second = defineQueue({ ...base, name: 'second', orderingKey, onDead: 'halt-key' })
  const open = (transport: Connector): Promise<unknown> =>
    createMillrace({ transport, queues: [going, second], store: memoryStore() })
  await assert.rejects(open(unordered('any')), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message:
      /queue "steps": orderingKey: any keeps no order by key; use Postgres.*queue "second": orderingKey/s,
  })
  await assert.rejects(open(unordered('rabbitmq')), /use queueType: 'quorum'/)
  await assert.rejects(open(unordered('nats')), /use nats\(\{ lanes: 16 \}\)/)
  await assert.rejects(open(unordered('sqs')), /use sqs\(\{ kind: 'fifo' \}\)/)
  await assert.rejects(open(unordered('kafka')), /use kafka\(\{ retry: 'hold' \}\)/)
  const noHalts = named('kafka', ({ haltedKeys: _, ...inner }) => ({ ...inner, name: 'kafka' }))
  await assert.rejects(open(noHalts), /queue "second": onDead: kafka cannot hold back a key/)
  const leaving = named('nats', (inner) => ({
    ...inner,
    name: 'nats',
    traits: { ...inner.traits, delayLeavesOrder: true },
  }))
  const delayed = defineQueue({ ...base, orderingKey, onDead: 'continue', delayed: 'wait' })
  await assert.rejects(
    createMillrace({ transport: leaving, queues: [delayed] }),
    /queue "steps": delayed: nats cannot let a key wait for a delayed message; leave it out/,
  )
})

test('halted keys of a transport that has none are refused, with who has them', async () => {
  const transport = named('kafka', ({ haltedKeys: _, ...inner }) => ({ ...inner, name: 'kafka' }))
  const app = await createMillrace({ transport, queues: [going] })
  for (const asked of [
    () => app.admin.keys.list(going),
    () => app.admin.keys.show(going, 'A'),
    () => app.admin.keys.resume(going, { keys: ['A'] }),
    () => app.admin.keys.skip(going, { keys: ['A'] }),
  ]) {
    await assert.rejects(asked, {
      code: 'MILLRACE_INVALID_OPTIONS',
      message:
        /^halted keys: kafka keeps no ordering keys that stand still .*Postgres, SQLite, Redis or memory/,
    })
  }
  await app.close()
})
