import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type Connector, createMillrace, defineQueue, silentLogger } from 'millrace'
import { memory } from 'millrace/memory'
import { postgres } from 'millrace/postgres'
import { redis } from 'millrace/redis'
import { sqlite } from 'millrace/sqlite'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { backendUrl } from '../backends.ts'
import { dropSchema, freshSchema } from '../transports/postgres-servers.ts'
import { freshPrefix } from '../transports/redis-servers.ts'

const payload = z.object({ n: z.number() })
const calls = defineQueue({
  ...{ name: 'calls', owner: 'team', payload },
  downstream: () => 'api',
  rateLimit: { perSecond: 0.001, burst: 2 },
})
const plain = defineQueue({ name: 'plain', owner: 'team', payload })

/** Each call answers a connector of another process on the same backend. */
type Place = (t: TestContext) => Promise<() => Connector>

const places = new Map<string, Place>([
  [
    'memory',
    async () => {
      const connector = memory()
      return () => connector
    },
  ],
  [
    'sqlite',
    async (t) => {
      const file = join(await folderOf(t), 'app.db')
      return () => sqlite({ file })
    },
  ],
  [
    'sqlite in memory',
    async () => {
      const db = new DatabaseSync(':memory:')
      return () => sqlite({ db })
    },
  ],
])
const redisUrl = backendUrl('redis 7')
if (redisUrl !== undefined) {
  places.set('redis', async () => {
    const prefix = freshPrefix()
    return () => redis({ url: redisUrl, prefix, group: 'shop', pollMs: 50 })
  })
}
const pgUrl = backendUrl('postgres 18')
if (pgUrl !== undefined) {
  places.set('postgres', async (t) => {
    const schema = freshSchema()
    t.after(() => dropSchema(pgUrl, schema))
    return () => postgres({ url: pgUrl, schema, pollMs: 50 })
  })
}

for (const [name, place] of places) {
  test(`${name}: breakers and rates of two processes are one without a store of their own, because the transport is it.`, async (t) => {
    const connector = await place(t)
    const open = async () => {
      const options = { transport: connector(), queues: [calls, plain], logger: silentLogger }
      const app = await createMillrace(options)
      t.after(() => app.close({ timeoutMs: 2_000 }))
      return app
    }
    const [one, other] = await Promise.all([open(), open()])
    assert.equal(one.admin.backend().store, name.split(' ')[0])
    await one.admin.breakers.open(calls, 'api')
    const [seen] = await other.admin.breakers.list(calls)
    assert.deepEqual([seen?.downstream, seen?.held], ['api', 'open'])
    await other.admin.breakers.auto(calls, 'api')
    let ran = 0
    for (const app of [one, other])
      app.work(calls, () => {
        ran += 1
      })
    await one.sendBatch(
      calls,
      Array.from({ length: 6 }, (_, n) => ({ n })),
    )
    await Promise.all([one.start(), other.start()])
    const waiting = async (): Promise<number> => (await one.admin.stats(calls)).scheduled ?? 0
    const end = Date.now() + 60_000
    while ((await waiting()) < 4 && Date.now() < end)
      await new Promise((done) => setTimeout(done, 20))
    // The burst of the fleet, not of each process.
    assert.deepEqual([ran, await waiting()], [2, 4])
  })
}

for (const [name, place] of places) {
  test(`${name}: the resume of another process reaches a consumer that its kill switch stopped, without a store of its own.`, async (t) => {
    const connector = await place(t)
    const open = async (migrate: 'auto' | 'check' = 'auto') => {
      const app = await createMillrace({
        ...{ transport: connector(), queues: [plain], logger: silentLogger, migrate },
      })
      t.after(() => app.close({ timeoutMs: 2_000 }))
      return app
    }
    const one = await open()
    // As `millrace resume` opens it: it makes no tables, and nobody is stopped yet.
    const early = await open('check')
    await early.admin.resume(plain)
    let broken = true
    let ok = 0
    const handler = (): void => {
      if (broken) throw new TypeError('x is not a function')
      ok += 1
    }
    one.work(plain, handler, { killSwitch: { resumeAfterMs: 600_000 }, concurrency: 5 })
    await one.sendBatch(
      plain,
      Array.from({ length: 100 }, (_, n) => ({ n })),
    )
    await one.start()
    await until(async () => !(await one.health()).ok)
    broken = false
    // Until it has made its tables nobody can tell it anything.
    const other = await open('check')
    const end = Date.now() + 60_000
    while (ok === 0 && Date.now() < end) {
      await other.admin.resume(plain)
      await new Promise((done) => setTimeout(done, 500))
    }
    assert.ok(ok > 0, 'the consumer goes on')
    await until(async () => (await one.health()).ok)
    await early.admin.resume(plain)
  })
}

for (const [name, place] of places) {
  test(`${name}: one resume reaches a consumer that was stopped before the tables were made in which it hears of it.`, async (t) => {
    const connector = await place(t)
    const open = async (migrate: 'auto' | 'check', queue = plain) => {
      const app = await createMillrace({
        ...{ transport: connector(), queues: [queue], logger: silentLogger, migrate },
      })
      t.after(() => app.close({ timeoutMs: 2_000 }))
      return app
    }
    const first = await open('auto')
    let broken = true
    let ok = 0
    const handler = (): void => {
      if (broken) throw new TypeError('x is not a function')
      ok += 1
    }
    const one = await open('check')
    one.work(plain, handler, { killSwitch: { failures: 2, resumeAfterMs: 600_000 } })
    await first.sendBatch(
      plain,
      Array.from({ length: 50 }, (_, n) => ({ n })),
    )
    await one.start()
    await until(async () => !(await one.health()).ok)
    broken = false
    // An app that shares a rate makes the tables of the store.
    await open('auto', calls)
    await (await open('check')).admin.resume(plain)
    await until(async () => ok > 0)
  })
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 60_000
  while (!(await isSo()) && Date.now() < end) await new Promise((done) => setTimeout(done, 20))
  assert.ok(await isSo())
}

test('Nothing of a store is made for an app that shares nothing, and a store that is given is used.', async (t) => {
  const file = join(await folderOf(t), 'app.db')
  const made = (): readonly unknown[] => {
    const db = new DatabaseSync(file)
    const sql = "SELECT name FROM sqlite_schema WHERE name GLOB 'millrace_store_*'"
    const found = db.prepare(sql).all()
    db.close()
    return found
  }
  const own = { ...{ name: 'own', owner: 'team', payload }, downstream: () => 'api' }
  const alone = defineQueue({ ...own, breaker: { scope: 'process' } })
  const queues = [plain, alone]
  const quiet = await createMillrace({ transport: sqlite({ file }), queues, logger: silentLogger })
  assert.equal(quiet.admin.backend().store, undefined)
  await quiet.admin.pause(plain)
  await quiet.admin.resume(plain)
  await quiet.close()
  assert.deepEqual(made(), [])
  const given = await createMillrace({
    ...{ transport: sqlite({ file }), queues: [calls], logger: silentLogger },
    store: memoryStore(),
  })
  assert.equal(given.admin.backend().store, 'memory')
  await given.close()
  assert.deepEqual(made(), [])
})

async function folderOf(t: TestContext): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'millrace-own-store-'))
  t.after(() => rm(made, { recursive: true, force: true }))
  return made
}
