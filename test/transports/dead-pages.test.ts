import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Harness } from 'millrace/conformance'
import {
  memoryStore,
  postgresStore,
  redisStore,
  type StoreConnector,
  sqliteStore,
} from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { present } from '../../src/conformance/acts.ts'
import { kill } from '../../src/conformance/promises/dead.ts'
import { withScope } from '../../src/conformance/scope.ts'
import { levelledShelf } from '../../src/layers/levelled-shelf.ts'
import type { DeadLetter } from '../../src/model/dead-letter.ts'
import { freshHistory } from '../../src/model/history.ts'
import type { Shelf } from '../../src/transport/transport.ts'
import { seeded } from '../runtime/stage.ts'
import { connectStore } from '../stores/store-harness.ts'
import { memoryHarness } from './memory-harness.ts'
import { postgresHarness } from './postgres-harness.ts'
import { dropSchema, freshSchema, postgresServers } from './postgres-servers.ts'
import { redisHarness } from './redis-harness.ts'
import { redisServers, smallestUser } from './redis-servers.ts'
import { betterSqliteHarness, databaseFile, nodeFileHarness } from './sqlite-harness.ts'

const MB = 1_000_000
/** Of each letter, the oldest first. */
const SIZES = [6 * MB, 14 * MB, 6 * MB, 6 * MB, 6 * MB]
/** Of the letters of each page, the newest first: 16 MiB of bodies at most. */
const PAGES = [[6 * MB, 6 * MB], [6 * MB], [14 * MB], [6 * MB]]

type List = Pick<Shelf, 'list'>

interface Pages {
  readonly ids: readonly string[]
  readonly sizes: readonly (readonly number[])[]
}

async function walk(shelf: List, queue: string, more: object): Promise<Pages> {
  const ids: string[] = []
  const sizes: (readonly number[])[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await shelf.list(queue, { limit: 100, ...more, ...(cursor && { cursor }) })
    ids.push(...page.items.map(({ envelope }) => envelope.id))
    sizes.push(page.items.map(({ envelope }) => envelope.body.byteLength))
    cursor = page.cursor
  }
  return { ids, sizes }
}

async function bounded(shelf: List, queue: string, oldest: readonly string[]): Promise<void> {
  const ids = [...oldest].reverse()
  for (const filter of [{}, { errorClass: 'permanent' }]) {
    assert.deepEqual(await walk(shelf, queue, filter), { ids, sizes: PAGES })
    const { sizes, ...found } = await walk(shelf, queue, { ...filter, bodies: false })
    assert.deepEqual(found, { ids })
    assert.deepEqual(sizes, [SIZES.map(() => 0)])
    const small = await walk(shelf, queue, { ...filter, bodies: false, limit: 2 })
    assert.deepEqual([small.ids, small.sizes], [ids, [[0, 0], [0, 0], [0]]])
    await before(shelf, queue, filter)
  }
  const { items, cursor } = await shelf.list(queue, { limit: 3, bodies: false })
  assert.deepEqual([items.length, cursor === null], [3, false])
}

/** Those that died until a moment. Pages with bodies are asked for this by the kit. */
async function before(shelf: List, queue: string, filter: object): Promise<void> {
  const all = await shelf.list(queue, { limit: 100, ...filter, bodies: false })
  const deadBefore = all.items.at(2)?.deadAt ?? 0
  const older = all.items.filter(({ deadAt }) => deadAt <= deadBefore)
  const { ids } = await walk(shelf, queue, { ...filter, deadBefore, bodies: false })
  assert.deepEqual(
    ids,
    older.map(({ envelope }) => envelope.id),
  )
}

const harnesses: readonly (readonly [string, () => Harness | Promise<Harness>])[] = [
  ['memory', memoryHarness],
  ['sqlite', nodeFileHarness],
  ['better-sqlite3', betterSqliteHarness],
  ...postgresServers().map(
    (server) => [server.name, () => postgresHarness({ server, client: 'pg' })] as const,
  ),
  ...redisServers().map(
    (server) => [server.name, async () => redisHarness(await smallestUser(server))] as const,
  ),
]

for (const [name, openHarness] of harnesses) {
  test(`${name}: a page of dead letters has 16 MiB of bodies at most, and none when nobody asks for them`, async (t) => {
    const harness = await openHarness()
    t.after(() => harness.dispose())
    await withScope({ harness, depth: 'quick', random: seeded(7) }, async (scope) => {
      const queue = await scope.queue()
      const sent = SIZES.map((bytes) => scope.message({ body: new Uint8Array(bytes) }))
      for (const one of sent) await kill(scope, queue, one)
      const ids = sent.map(({ id }) => id)
      await bounded(present(scope.far.shelf), queue, ids)
    })
  })
}

interface StorePlace {
  readonly name: string
  readonly open: () => Promise<{ connector: StoreConnector; dispose: () => Promise<void> }>
}

const stores: readonly StorePlace[] = [
  { name: 'memory', open: async () => ({ connector: memoryStore(), dispose: async () => {} }) },
  {
    name: 'sqlite',
    open: async () => {
      const { file, dispose } = await databaseFile()
      return { connector: sqliteStore({ file }), dispose }
    },
  },
  ...postgresServers().map(({ name, url }) => ({
    name,
    open: async () => {
      const schema = freshSchema()
      const dispose = (): Promise<void> => dropSchema(url, schema)
      return { connector: postgresStore({ url, schema }), dispose }
    },
  })),
  ...redisServers().map((server) => ({
    name: server.name,
    open: async () => {
      const { address, prefix, dispose } = await smallestUser(server)
      return { connector: redisStore({ ...address, prefix }), dispose }
    },
  })),
]

function letter(queue: string, id: string, bytes: number): Omit<DeadLetter, 'deadAt'> {
  return {
    envelope: { id, body: new Uint8Array(bytes), headers: {}, priority: 0 },
    ...{ queue, owner: 'team', errorClass: 'permanent', reason: 'broken' },
    ...{ history: freshHistory, sentAt: 0 },
  }
}

for (const { name, open } of stores) {
  test(`${name}, store: a page of dead letters has 16 MiB of bodies at most, and none when nobody asks for them`, async (t) => {
    const { connector, dispose } = await open()
    const store = await connectStore(connector)
    t.after(() => store.close().then(dispose))
    const ids = SIZES.map((_, i) => `m${i}`)
    for (const [i, bytes] of SIZES.entries()) await store.shelf.put([letter('q', `m${i}`, bytes)])
    await bounded(store.shelf, 'q', ids)
  })
}

test('levels: a page that one level ends early keeps the order of all', async () => {
  const clock = virtualClock()
  const store = await connectStore(memoryStore(), clock)
  const levels = ['low', 'high']
  // Newest first: low 6, high 1, low 6, high 1, … so that a page of low ends behind its second.
  const ids = Array.from({ length: 8 }, (_, i) => `m${i}`)
  for (const [i, id] of ids.entries()) {
    const level = i % 2 === 0 ? 'high' : 'low'
    await store.shelf.put([letter(level, id, level === 'low' ? 6 * MB : 1)])
    await clock.advance(1)
  }
  const shelf = levelledShelf(asShelf(store.shelf), () => levels)
  const found = await walk(shelf, 'q', {})
  assert.deepEqual(found.ids, [...ids].reverse())
  await store.close()
})

/** A redrive is none of its business. */
function asShelf(stored: Omit<Shelf, 'redrive'>): Shelf {
  return { ...stored, redrive: async () => [] }
}
