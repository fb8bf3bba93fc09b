import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Admin } from '@platformatic/kafka'
import { type Kafka, type KafkaServer, startKafka } from '../../scripts/rig/kafka-server.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { KEYS, openShop, type Shop } from './kafka-shop.ts'
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts'

const skip = backendUrl('kafka') === undefined
/**
 * A broker that is silent for so long is none any more (9 s by default); what resuming takes is mostly this, and an election
 * before it where the one that was killed led the others too.
 */
const SESSION_MS = 3_000
const HOLE_MS = 3_000

test('Of three brokers one is killed, one is cut off, all are down, each is restarted: nothing is lost, each effect is once.', {
  skip,
}, async (t: TestContext) => {
  const proxies = new Map<number, TcpProxy>()
  const server = await threeBrokers(t, proxies)
  const brokers = [...proxies.values()].map(({ port }) => `127.0.0.1:${port}`)
  const shop = await openShop(t, brokers)
  await until('work', () => shop.sold().size > 100, 60_000)

  const leader = nodeOf(server, await leaderOf(brokers))
  proxies.get(leader.id)?.refuse()
  await leader.halt('crash')
  t.diagnostic(`a leader killed: ${await resumed(shop)}`)
  await leader.resume()
  await proxies.get(leader.id)?.heal()

  const cutOff = nodeOf(server, await leaderOf(brokers))
  const proxy = proxies.get(cutOff.id)
  proxy?.blackHole()
  await sleep(HOLE_MS)
  await proxy?.heal()
  t.diagnostic(`a leader cut off for ${HOLE_MS} ms: ${await resumed(shop)} after it is back`)

  await Promise.all(server.nodes.map((node) => node.halt('crash')))
  await Promise.all(server.nodes.map((node) => node.resume()))
  t.diagnostic(`all three killed: ${await resumed(shop)} after they are back`)

  for (const node of server.nodes) {
    await node.restart('clean')
    t.diagnostic(`broker ${node.id} restarted: ${await resumed(shop)}`)
  }

  await shop.endSending()
  const missing = (): readonly number[] => {
    const sold = shop.sold()
    return [...shop.confirmed].filter((n) => !sold.has(n))
  }
  await until('all that was confirmed', () => missing().length === 0, 30_000).catch(() => {})
  assert.deepEqual(missing(), [])
  const sold = shop.sold()
  const twice = [...sold].filter(([, times]) => times !== 1)
  assert.deepEqual(twice, [])
  t.diagnostic(`${shop.confirmed.size} confirmed, ${sold.size} effects`)
})

/** Clients and the other brokers reach each through a proxy. */
async function threeBrokers(t: TestContext, proxies: Map<number, TcpProxy>): Promise<Kafka> {
  const server = await startKafka({
    nodes: 3,
    config: async ({ id, port, controllerPort }) => {
      const proxy = await tcpProxy(port)
      proxies.set(id, proxy)
      t.after(() => proxy.close())
      return [
        `advertised.listeners=PLAINTEXT://127.0.0.1:${proxy.port},CONTROLLER://127.0.0.1:${controllerPort}`,
        `broker.session.timeout.ms=${SESSION_MS}`,
        'broker.heartbeat.interval.ms=500',
        // How long brokers wait for one that does not answer (30 s by default); so long nothing that it leads is confirmed.
        'request.timeout.ms=2000',
      ]
    },
  })
  t.after(() => server.stop())
  return server
}

/** Who leads most partitions of the topic. */
async function leaderOf(brokers: readonly string[]): Promise<number> {
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: [...brokers], retries: 20 })
  const { topics } = await admin.metadata({ topics: ['orders'] })
  await admin.close()
  const leaders = topics.get('orders')?.partitions.map(({ leader }) => leader) ?? []
  const led = (id: number): number => leaders.filter((one) => one === id).length
  const [most] = leaders.toSorted((a, b) => led(b) - led(a))
  assert.ok(most !== undefined)
  return most
}

function nodeOf({ nodes }: Kafka, id: number): KafkaServer {
  const found = nodes.find((node) => node.id === id)
  assert.ok(found, `no node ${id}`)
  return found
}

/** Waits until orders of every key are confirmed and done that were not before; says how long that took. */
async function resumed(shop: Shop): Promise<string> {
  const from = Date.now()
  const before = new Set(shop.confirmed)
  const keysOf = (some: Iterable<number>): number =>
    new Set([...some].filter((n) => !before.has(n)).map((n) => n % KEYS)).size
  await until('confirms of every key', () => keysOf(shop.confirmed) === KEYS, 60_000)
  const sentMs = Date.now() - from
  await until('work of every key', () => keysOf(shop.sold().keys()) === KEYS, 60_000)
  return `all keys are sent again in ${sentMs} ms, done in ${Date.now() - from} ms`
}
