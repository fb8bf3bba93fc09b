import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { type NatsCluster, startNatsCluster } from '../../scripts/rig/nats-cluster.ts'
import { backendUrl } from '../backends.ts'
import { openNats } from '../transports/nats-bench.ts'
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
  })

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
