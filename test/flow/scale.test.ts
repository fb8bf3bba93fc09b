import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { intake } from 'millrace/http'
import { memory } from 'millrace/memory'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { type VirtualClock, virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { closeNow } from '../runtime/stage.ts'

const tasks = defineQueue({ name: 'tasks', owner: 'team-flow', payload: z.number() })

interface Fleet {
  readonly clock: VirtualClock
  readonly transport: ReturnType<typeof memory>
  readonly store?: StoreConnector
}

async function open(t: TestContext, { clock, transport, store }: Fleet) {
  const app = await createMillrace({
    transport,
    queues: [tasks],
    clock,
    logger: silentLogger,
    ...(store === undefined ? {} : { store }),
  })
  t.after(() => closeNow(app, clock))
  return app
}

/** Two processes handle 10 messages a second, 400 ms each, for two minutes; a third one only looks. */
async function work(t: TestContext, fleet: Fleet) {
  const { clock } = fleet
  const worker = async () => {
    const app = await open(t, fleet)
    const handler = () => new Promise<void>((resolve) => clock.after(400, resolve))
    app.work(tasks, handler, { concurrency: 5 })
    await app.start()
    return app
  }
  const workers = [await worker(), await worker()]
  const observer = await open(t, fleet)
  for (let second = 0; second < 120; second++) {
    await observer.sendBatch(tasks, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    await clock.advance(1_000)
  }
  return { observer, workers }
}

test('With a store a process that never worked knows what all handlers did, and how many workers they need.', async (t) => {
  const fleet = { clock: virtualClock(), transport: memory(), store: memoryStore() }
  const { observer } = await work(t, fleet)
  const seen = await observer.admin.scale(tasks, { concurrency: 1 })
  assert.equal(seen.measuredIn, 'fleet')
  assert.equal(seen.handlerMs, 400)
  assert.ok(Math.abs((seen.arrivalsPerSecond ?? 0) - 10) < 2, String(seen.arrivalsPerSecond))
  assert.ok(seen.workers === 5 || seen.workers === 6, String(seen.workers))
  await observer.sendBatch(tasks, Array<number>(600).fill(1))
  await fleet.clock.advance(0)
  const grown = await observer.admin.scale(tasks, { concurrency: 1, clearWithinMs: 30_000 })
  assert.ok((grown.workers ?? 0) > (seen.workers ?? 0), grown.why.join('; '))
})

test('Without a store each process knows its own handlers, and says so.', async (t) => {
  const fleet = { clock: virtualClock(), transport: memory() }
  const { observer, workers } = await work(t, fleet)
  const [own] = await Promise.all(workers.map((one) => one.admin.scale(tasks)))
  assert.equal(own?.measuredIn, 'process')
  assert.equal(own?.handlerMs, 400)
  assert.equal(own?.arrivalsPerSecond, undefined)
  const blind = await observer.admin.scale(tasks)
  assert.deepEqual([blind.measuredIn, blind.handlerMs], ['nowhere', undefined])
  const told = await observer.admin.scale(tasks, { handlerMs: 400, arrivalsPerSecond: 100 })
  assert.equal(told.workers, 5)
})

test('A look that lasts sees the queue grow.', async (t) => {
  const fleet = { clock: virtualClock(), transport: memory(), store: memoryStore() }
  const { observer, workers } = await work(t, fleet)
  for (const one of workers) await closeNow(one, fleet.clock)
  const looking = observer.admin.scale(tasks, { watchMs: 10_000 })
  await observer.sendBatch(tasks, Array<number>(500).fill(1))
  await fleet.clock.advance(10_000)
  const seen = await looking
  assert.ok((seen.arrivalsPerSecond ?? 0) > 5, String(seen.arrivalsPerSecond))
})

test('Wrong wishes are refused, all at once.', async (t) => {
  const app = await open(t, { clock: virtualClock(), transport: memory() })
  await assert.rejects(app.admin.scale(tasks, { min: 5, max: 2, watchMs: -1 }), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message:
      'scale of queue "tasks": max: expected an integer from 5 to 10000, got 2; watchMs: expected an integer from 0 to 60000, got -1',
  })
  await assert.rejects(app.admin.scale('task'), { code: 'MILLRACE_UNKNOWN_QUEUE' })
})

/** What KEDA's metrics-api scaler does: a GET, the status 200, and a number where valueLocation says. */
async function keda(url: string, valueLocation: string, token?: string): Promise<number> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const answer = await fetch(url, { headers })
  if (answer.status !== 200) throw new Error(`status ${answer.status}: ${await answer.text()}`)
  const value: unknown = Object(await answer.json())[valueLocation]
  if (typeof value !== 'number') throw new Error('valueLocation must point to a number')
  return value
}

test('GET /scale/:queue gives KEDA its number, and none where too little is known.', async (t) => {
  const app = await open(t, { clock: virtualClock(), transport: memory() })
  const door = intake(app, { port: 0, tokens: ['a-token-that-may-read'], queues: ['tasks'] })
  t.after(() => door.close({ timeoutMs: 0 }))
  await door.listen()
  const at = (path: string): string => `${door.url}/scale/${path}`
  const token = 'a-token-that-may-read'
  await app.sendBatch(tasks, Array<number>(90).fill(1))
  assert.equal(await keda(at('tasks'), 'depth', token), 90)
  assert.equal(await keda(at('tasks'), 'workers', token), 1)
  const query = '?handlerMs=8000&clearWithinMs=60000&concurrency=1&utilisation=1&max=20'
  assert.equal(await keda(at(`tasks${query}`), 'workers', token), 12)
  const odd = '?handlerMs=8000&clearWithinMs=60000&concurrency=1&utilisation=0.7'
  assert.equal(await keda(at(`tasks${odd}`), 'slots', token), 17.143)
  await assert.rejects(keda(at('tasks'), 'handlerMs', token), /valueLocation/)
  await assert.rejects(keda(at('tasks'), 'depth'), /status 401/)
  await assert.rejects(keda(at('task'), 'depth', token), /status 404.*MILLRACE_UNKNOWN_QUEUE/)
  await assert.rejects(keda(at('tasks?max=-1'), 'depth', token), /status 400.*BAD_QUERY/)
  await assert.rejects(keda(at('tasks?toString=1'), 'depth', token), /status 400.*BAD_QUERY/)
  await assert.rejects(keda(at('tasks?maxi=1'), 'depth', token), /status 400.*BAD_QUERY/)
  await assert.rejects(keda(at('tasks?concurrency=0'), 'depth', token), /status 400.*INVALID_OPTI/)
  const post = await fetch(at('tasks'), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  })
  assert.equal(post.status, 405)
})

test('A look that waits ends with its signal, and with the app.', async () => {
  const clock = virtualClock()
  const app = await createMillrace({
    ...{ transport: memory(), queues: [tasks], clock, logger: silentLogger },
  })
  const stop = new AbortController()
  const stopped = app.admin.scale(tasks, { watchMs: 60_000, signal: stop.signal })
  const reason = assert.rejects(stopped, /enough/)
  await clock.advance(10)
  stop.abort(new Error('enough'))
  await reason
  await assert.rejects(
    app.admin.scale(tasks, { signal: 5 } as never),
    /signal: expected an AbortSignal/,
  )
  const closed = assert.rejects(app.admin.scale(tasks, { watchMs: 60_000 }), {
    code: 'MILLRACE_CLOSED',
  })
  await clock.advance(10)
  await closeNow(app, clock)
  await closed
  assert.equal(clock.nextDueAt(), undefined, 'no timer is left')
})
