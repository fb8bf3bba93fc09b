import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { type NatsCluster, startNatsCluster } from '../../scripts/rig/nats-cluster.ts'
import { backendUrl } from '../backends.ts'
import { openNats } from '../transports/nats-bench.ts'
import { until } from '../transports/until.ts'
import { throughTrouble } from './nats-load.ts'

if (backendUrl('nats') !== undefined)
  describe('a nats cluster', () => {
    let cluster: NatsCluster
    before(async () => {
      cluster = await startNatsCluster()
    })
    after(() => cluster?.stop())

    test('the node that leads a queue of three replicas is killed under load: nothing is lost, and work goes on by itself', (t) =>
      leaderKilled(t, cluster))
    test('a rolling restart under load, each node when the one before is whole again: nothing is lost, and work goes on', (t) =>
      rollingRestart(t, cluster))
  })

async function rollingRestart(t: TestContext, { nodes, urls }: NatsCluster): Promise<void> {
  const bench = await openNats([...urls], { replicas: 3 })
  t.after(() => bench.dispose())
  const isWhole = async (): Promise<boolean> => {
    const asked = bench.manager.streams.info(`${bench.prefix}-queue-q`)
    const replicas = (await asked.catch(() => undefined))?.cluster?.replicas ?? []
    return replicas.length === 2 && replicas.every(({ current }) => current)
  }
  await throughTrouble(t, {
    bench,
    servers: urls,
    trouble: async () => {
      for (const node of nodes) {
        await until('all replicas to be current', isWhole, 60_000)
        await node.restart('clean')
      }
    },
  })
}

async function leaderKilled(t: TestContext, { nodes, urls }: NatsCluster): Promise<void> {
  const spared = await openNats([...urls], { replicas: 3 })
  t.after(() => spared.dispose())
  const { config, cluster } = await spared.manager.streams.info(`${spared.prefix}-queue-q`)
  assert.equal(config.num_replicas, 3)
  const leader = nodes.find(({ name }) => name === cluster?.leader)
  assert.ok(leader, `${cluster?.leader} is none of ours`)
  t.after(() => leader.resume())
  await throughTrouble(t, { bench: spared, servers: urls, trouble: () => leader.halt('crash') })
}
