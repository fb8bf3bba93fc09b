import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@redis/client'
import { type RedisCluster, startRedisCluster } from '../../scripts/rig/redis-cluster.ts'
import type { RedisServer } from '../../scripts/rig/redis-server.ts'
import { connectTo, signal } from '../transports/redis-bench.ts'
import { freshPrefix, NO_REDIS, redisServers } from '../transports/redis-servers.ts'
import { until } from '../transports/until.ts'
import { produce, work } from './load.ts'

/** These kill and change nodes, so they are private ones. */
const available = redisServers().some(({ name }) => name === 'redis 7')
/** Between two keys that move, so that much of the load meets a queue that is on two nodes. */
const STEP_MS = 200
const MORE = 200

describe('a redis cluster that changes under load', { skip: available ? false : NO_REDIS }, () => {
  let cluster: RedisCluster
  before(async () => {
    cluster = await startRedisCluster()
  })
  after(() => cluster?.stop())

  test('The slot of a queue moves to another node, key by key: nothing is lost, and work goes on there.', (t) =>
    throughTrouble(t, cluster, async (held) => {
      const to = cluster.nodes.find((node) => node !== held.node)
      assert.ok(to)
      t.diagnostic(`${await moveSlot(held.slot, held.node, to)} keys moved`)
    }))
  test('The node of a queue is killed and comes back: nothing is lost, and work goes on.', (t) =>
    throughTrouble(t, cluster, async ({ node }) => {
      await node.halt('crash')
      await sleep(1_000)
      await node.resume()
    }))
})

interface Place {
  readonly slot: number
  readonly node: RedisServer
}

async function throughTrouble(
  t: TestContext,
  cluster: RedisCluster,
  trouble: (place: Place) => Promise<void>,
): Promise<void> {
  const prefix = freshPrefix()
  const transport = await connectTo({ cluster: cluster.urls, prefix, timeoutMs: 2_000 })
  t.after(() => transport.close())
  await transport.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], signal)
  const place = await placeOf(cluster, prefix)
  const stop = new AbortController()
  const confirmed = new Set<string>()
  const done = new Set<string>()
  const producers = [0, 1].map((n) => produce(transport, `p${n}`, confirmed, stop.signal))
  const workers = [0, 1].map(() => work(transport, done, stop.signal))
  await until('some work', () => done.size > MORE)
  await trouble(place)
  const endedAt = Date.now()
  const [sent, worked] = [confirmed.size, done.size]
  await until('sends after it', () => confirmed.size > sent + MORE, 60_000)
  await until('work after it', () => done.size > worked + MORE, 60_000)
  t.diagnostic(`goes on ${Date.now() - endedAt} ms after it`)
  stop.abort()
  await Promise.all([...producers, ...workers])
  const missing = (): readonly string[] => [...confirmed].filter((id) => !done.has(id))
  await work(transport, done, AbortSignal.timeout(20_000), () => missing().length === 0)
  assert.deepEqual(missing(), [])
  t.diagnostic(`${confirmed.size} confirmed, all done`)
}

async function asking<T>(
  { url }: RedisServer,
  use: (ask: (...words: readonly string[]) => Promise<unknown>) => Promise<T>,
): Promise<T> {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await use((...words) => client.sendCommand([...words]))
  } finally {
    client.destroy()
  }
}

/** Where the keys of the queue are. */
async function placeOf({ nodes }: RedisCluster, prefix: string): Promise<Place> {
  for (const node of nodes) {
    const keys = await asking(node, async (ask) => (await ask('KEYS', `*${prefix}*`)) as string[])
    const [key] = keys
    if (key === undefined) continue
    return { slot: Number(await asking(node, (ask) => ask('CLUSTER', 'KEYSLOT', key))), node }
  }
  throw new Error('the queue is on no node')
}

/** As operators and their tools do it; answers how many keys it were. */
async function moveSlot(slot: number, from: RedisServer, to: RedisServer): Promise<number> {
  const name = String(slot)
  return await asking(from, (source) =>
    asking(to, async (target) => {
      const [fromId, toId] = [
        String(await source('CLUSTER', 'MYID')),
        String(await target('CLUSTER', 'MYID')),
      ]
      await target('CLUSTER', 'SETSLOT', name, 'IMPORTING', fromId)
      await source('CLUSTER', 'SETSLOT', name, 'MIGRATING', toId)
      let moved = 0
      for (;;) {
        const [key] = (await source('CLUSTER', 'GETKEYSINSLOT', name, '1')) as string[]
        if (key === undefined) break
        await source('MIGRATE', '127.0.0.1', String(to.port), key, '0', '5000')
        moved += 1
        await sleep(STEP_MS)
      }
      await target('CLUSTER', 'SETSLOT', name, 'NODE', toId)
      await source('CLUSTER', 'SETSLOT', name, 'NODE', toId)
      return moved
    }),
  )
}
