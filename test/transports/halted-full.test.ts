import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PermanentError } from 'millrace'
import { memory } from 'millrace/memory'
import { redis } from 'millrace/redis'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { type AppPlace, sqlPlaces } from './app-places.ts'
import { redisServers, smallestUser } from './redis-servers.ts'
import { until } from './until.ts'

const places: readonly AppPlace[] = [
  { name: 'memory', open: async () => ({ transport: memory(), dispose: async () => {} }) },
  ...sqlPlaces,
  ...redisServers().map((server) => ({
    name: server.name,
    open: async () => {
      const { address, prefix, dispose } = await smallestUser(server)
      return { transport: redis({ ...address, prefix }), dispose }
    },
  })),
]

const MAX_DEPTH = 5
/** Who waits for room here waits for ever. */
const TIMED = { timeout: 60_000 } as const

/** Two keys whose first messages died, and a queue that is full of what waits behind them. */
async function standstill(t: TestContext, place: AppPlace) {
  const { transport, dispose } = await place.open()
  const queue = defineQueue({
    ...{ name: 'steps', owner: 'team', payload: z.object({ of: z.string(), n: z.number() }) },
    orderingKey: ({ of }) => of,
    onDead: 'halt-key',
    capacity: { maxDepth: MAX_DEPTH },
  })
  const app = await createMillrace({ transport, queues: [queue], logger: silentLogger })
  t.after(() => app.close({ timeoutMs: 0 }).then(dispose))
  const done: string[] = []
  const state = { mended: false }
  app.work(queue, ({ payload: { of, n } }) => {
    if (!state.mended) throw new PermanentError('no such account')
    done.push(`${of}${n}`)
  })
  await app.start()
  for (const key of ['A', 'B']) await app.send(queue, { of: key, n: 0 })
  await until('both halted', async () => (await app.admin.keys.list(queue)).items.length === 2)
  for (let n = 1; n <= MAX_DEPTH; n++) await app.send(queue, { of: 'A', n })
  await assert.rejects(app.send(queue, { of: 'A', n: 99 }), { code: 'MILLRACE_QUEUE_FULL' })
  const { keys, deadLetters } = app.admin
  const idOf = async (key: string): Promise<string> =>
    (await keys.show(queue, key))?.messageId ?? 'none'
  return { queue, state, done, keys, deadLetters, idOf, stats: () => app.admin.stats(queue) }
}

const ALL_OF_A: readonly string[] = ['A0', 'A1', 'A2', 'A3', 'A4', 'A5']

for (const place of places) {
  test(
    `${place.name}: keys that halted and filled their queue are resumed, over its capacity by one each`,
    TIMED,
    async (t) => {
      const { queue, state, done, keys } = await standstill(t, place)
      state.mended = true
      assert.deepEqual((await keys.resume(queue, { keys: ['B', 'A'] })).moved, ['B', 'A'])
      await until('all done', () => done.length === ALL_OF_A.length + 1)
      assert.deepEqual(
        done.filter((name) => name.startsWith('A')),
        ALL_OF_A,
      )
    },
  )

  test(
    `${place.name}: a redrive into a queue that is full behind halted keys moves what halts them first`,
    TIMED,
    async (t) => {
      const { queue, state, done, keys, deadLetters, idOf, stats } = await standstill(t, place)
      // B's letter is a dead letter like others now: it needs room, which A's makes.
      const other = await idOf('B')
      await keys.skip(queue, { keys: ['B'] })
      const stopped = new AbortController()
      const waits = deadLetters.redrive(queue, {
        ...{ ids: [other], signal: stopped.signal },
        onFull: () => stopped.abort(),
      })
      assert.deepEqual(await waits, { matched: 1, moved: 0, notFound: [] })
      assert.equal((await stats()).dead, 2)
      state.mended = true
      const all = await deadLetters.redrive(queue, { ids: [other, await idOf('A')] })
      assert.deepEqual(all, { matched: 2, moved: 2, notFound: [] })
      await until('all done', () => done.length === ALL_OF_A.length + 1)
      assert.deepEqual(
        done.filter((name) => name.startsWith('A')),
        ALL_OF_A,
      )
    },
  )
}
