import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as dial } from '@nats-io/transport-node'
import { type NatsCluster, startNatsCluster } from '../../scripts/rig/nats-cluster.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
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

/** Kills the node that leads the stream, starts the one that it had killed before, and is over when another one leads. */
async function leaderKiller(t: TestContext, { nodes, urls }: NatsCluster) {
  const raw = await dial({ servers: [...urls], maxReconnectAttempts: -1, reconnectTimeWait: 100 })
  t.after(() => raw.close())
  const manager = await jetstreamManager(raw, { timeout: 20_000 })
  let dead: NatsCluster['nodes'][number] | undefined
  const leader = async (): Promise<string | undefined> =>
    (await manager.streams.info('order-queue-steps')).cluster?.leader
  return async (): Promise<void> => {
    await dead?.resume()
    const led = await leader()
    dead = nodes.find(({ name }) => name === led)
    assert.ok(dead, `${led} is none of ours`)
    t.diagnostic(`killed ${dead.name}`)
    await dead.halt('crash')
    const isLed = async (): Promise<boolean> =>
      ![undefined, '', led].includes(await leader().catch(() => undefined))
    await until('another leader', isLed, 60_000)
  }
}
