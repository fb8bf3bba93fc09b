import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, hasCode, PermanentError } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { nats } from 'millrace/nats'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { backendUrl } from '../backends.ts'
import { freshPrefix, removeStreams } from './nats-harness.ts'
import { until } from './until.ts'

const servers = backendUrl('nats')
const ACK_WAIT_MS = 500
const STILL_MS = 700

const orders = defineQueue({
  name: 'orders',
  owner: 'team-a',
  payload: z.string(),
  retry: { attempts: 3, baseMs: 20 },
})

async function appOn(t: TestContext, address: string) {
  const prefix = freshPrefix()
  const app = await createMillrace({
    transport: nats({ servers: address, prefix }),
    queues: [orders],
    logger: silentLogger,
  })
  t.after(async () => {
    await app.close()
    await removeStreams(address, prefix)
  })
  return app
}

const steps = defineQueue({
  name: 'steps',
  owner: 'team-a',
  payload: z.object({ of: z.string(), n: z.number() }),
  retry: { attempts: 3, baseMs: 50 },
  orderingKey: ({ of }) => of,
  onDead: 'continue',
})

if (servers !== undefined) {
  test('on nats, a process that stood still for longer than the ack wait commits no effect, though its lease is long', async (t) => {
    const prefix = freshPrefix()
    const db = new DatabaseSync(':memory:')
    db.exec('CREATE TABLE effect (of TEXT)')
    t.after(() => db.close())
    const slow = defineQueue({
      name: 'slow',
      owner: 'team-a',
      payload: z.string(),
      handlerTimeoutMs: 60_000,
    })
    const app = await createMillrace({
      transport: nats({ servers, prefix, ackWaitMs: ACK_WAIT_MS }),
      queues: [slow],
      inbox: sqliteInbox({ db }),
      logger: silentLogger,
    })
    t.after(async () => {
      await app.close()
      await removeStreams(servers, prefix)
    })
    const ended: unknown[] = []
    app.work(slow, async (_, ctx) => {
      // As if it were stopped: no timer fires before what follows.
      if (ended.length === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STILL_MS)
      const write = (tx: DatabaseSync): void =>
        void tx.prepare("INSERT INTO effect VALUES ('x')").run()
      ended.push(await ctx.tx(write).catch((error: unknown) => error))
    })
    await app.start()
    await app.send(slow, 'x')
    await until('both runs', () => ended.length === 2)
    assert.ok(hasCode(ended[0], 'MILLRACE_LEASE_LOST'), String(ended[0]))
    assert.equal(ended[1], undefined)
    assert.equal(db.prepare('SELECT count(*) AS n FROM effect').get()?.['n'], 1)
  })

  test('an app on nats retries, buries and redrives without a store', async (t) => {
    const app = await appOn(t, servers)
    const attempts: string[] = []
    let broken = true
    app.work(orders, (message) => {
      attempts.push(`${message.payload} ${message.attempt}`)
      if (message.payload === 'poison' && broken) throw new PermanentError('no')
      if (message.payload === 'flaky' && message.attempt < 3) throw new Error('try again')
    })
    await app.start()
    const poison = await app.send(orders, 'poison')
    await app.send(orders, 'flaky')
    const isDead = async (): Promise<boolean> =>
      (await app.admin.deadLetters.list(orders, {})).items.length === 1
    await until('three attempts and a death', async () => attempts.length === 4 && (await isDead()))
    assert.deepEqual(attempts.sort(), ['flaky 1', 'flaky 2', 'flaky 3', 'poison 1'])
    const letter = await app.admin.deadLetters.show(orders, poison.id)
    assert.deepEqual([letter?.owner, letter?.errorClass], ['team-a', 'permanent'])
    broken = false
    await app.admin.deadLetters.redrive(orders, { ids: [poison.id], reason: 'fixed' })
    await until('the redriven one', () => attempts.length === 5)
    assert.equal(attempts[4], 'poison 1')
    await until('nothing left', async () => {
      const { depth, inFlight, dead } = await app.admin.stats(orders)
      return depth === 0 && inFlight === 0 && dead === 0
    })
    assert.equal((await app.health()).ok, true)
  })

  test('two apps share a queue on nats, and each message is handled by one of them', async (t) => {
    const prefix = freshPrefix()
    const handled: string[] = []
    const open = async (): Promise<void> => {
      const app = await createMillrace({
        transport: nats({ servers, prefix }),
        queues: [orders],
        logger: silentLogger,
      })
      t.after(() => app.close())
      app.work(orders, ({ payload }) => void handled.push(payload), { concurrency: 20 })
      await app.start()
      await app.sendBatch(
        orders,
        Array.from({ length: 300 }, (_, at) => `${handled.length} ${at}`),
      )
    }
    await Promise.all([open(), open()])
    await until('all of them', () => handled.length >= 600)
    assert.equal(handled.length, 600)
    t.after(() => removeStreams(servers, prefix))
  })

  test('an app on nats with lanes keeps its keys in order through retries, a death and a pause, and redrives', async (t) => {
    const prefix = freshPrefix()
    const open = async () => {
      const transport = nats({ servers, prefix, lanes: 8 })
      const app = await createMillrace({ transport, queues: [steps], logger: silentLogger })
      t.after(() => app.close())
      return app
    }
    t.after(() => removeStreams(servers, prefix))
    const [app, other] = [await open(), await open()]
    const done: string[] = []
    let broken = true
    for (const each of [app, other]) {
      each.work(
        steps,
        ({ payload: { of, n }, attempt }) => {
          if (of === 'A' && n === 2 && attempt < 3) throw new Error('try again')
          if (of === 'B' && n === 1 && broken) throw new PermanentError('no')
          done.push(`${of}${n}`)
        },
        { concurrency: 5 },
      )
    }
    await app.admin.pause(steps)
    assert.equal((await other.admin.stats(steps)).paused, true)
    await assert.rejects(
      app.send(steps, { of: 'A', n: 0 }, { delayMs: 1_000 }),
      /delayMs: nats keeps keys in order, and a message with a key that waits would leave its place/,
    )
    const sent = ['A', 'B', 'C'].flatMap((of) => [1, 2, 3].map((n) => ({ of, n })))
    const ids = (await app.sendBatch(steps, sent)).map(({ id }) => id)
    await Promise.all([app.start(), other.start()])
    assert.equal((await app.admin.stats(steps)).depth, 9)
    assert.equal(done.length, 0)
    await other.admin.resume(steps)
    await until('all but the dead one', () => done.length === 8)
    const ofKey = (key: string): readonly string[] => done.filter((one) => one.startsWith(key))
    assert.deepEqual(ofKey('A'), ['A1', 'A2', 'A3'])
    assert.deepEqual(ofKey('B'), ['B2', 'B3'])
    assert.deepEqual(ofKey('C'), ['C1', 'C2', 'C3'])
    broken = false
    const [dead = ''] = ids.slice(3)
    await app.admin.deadLetters.redrive(steps, { ids: [dead], reason: 'mended' })
    await until('the redriven one', () => done.length === 9)
    assert.equal(done[8], 'B1')
    await until('nothing left', async () => {
      const { depth, inFlight, dead: left } = await app.admin.stats(steps)
      return depth === 0 && inFlight === 0 && left === 0
    })
  })
}
