import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as dial } from '@nats-io/transport-node'
import { type NatsCluster, startNatsCluster } from '../../scripts/rig/nats-cluster.ts'
import { backendUrl } from '../backends.ts'
import { campaign } from './order-campaign.ts'

if (backendUrl('nats') !== undefined)
  test('nats: workers are killed and stopped, the node that leads the lanes is killed three times, and each key has all its effects, once and in order', async (t) => {
    const cluster = await startNatsCluster()
    t.after(() => cluster.stop())
    const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'effects.db')
    const at = { url: cluster.urls, prefix: 'order', replicas: 3 }
    const place = { kind: 'nats', ...at, file } as const
    await campaign(t, place, join(folder, 'record.ndjson'), await leaderKiller(t, cluster))
  })

/** Kills the node that leads the stream, and starts the one that it had killed before. */
async function leaderKiller(t: TestContext, { nodes, urls }: NatsCluster) {
  const raw = await dial({ servers: [...urls], maxReconnectAttempts: -1, reconnectTimeWait: 100 })
  t.after(() => raw.close())
  const manager = await jetstreamManager(raw, { timeout: 20_000 })
  let dead: NatsCluster['nodes'][number] | undefined
  return async (): Promise<void> => {
    await dead?.resume()
    const { cluster } = await manager.streams.info('order-queue-steps')
    dead = nodes.find(({ name }) => name === cluster?.leader)
    assert.ok(dead, `${cluster?.leader} is none of ours`)
    t.diagnostic(`killed ${dead.name}`)
    await dead.halt('crash')
  }
}
