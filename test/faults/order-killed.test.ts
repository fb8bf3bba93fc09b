import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startNats } from '../../scripts/rig/nats-server.ts'
import { backendUrl } from '../backends.ts'
import { deleteLanes, withChannel } from '../transports/rabbitmq-subjects.ts'
import { campaign } from './order-campaign.ts'
import type { OrderPlace } from './order-place.ts'
import { tcpProxy } from './tcp-proxy.ts'

const redisUrl = backendUrl('redis 7')
const postgresUrl = backendUrl('postgres 18')

const places: Readonly<Record<string, ((file: string) => OrderPlace) | undefined>> = {
  sqlite: (file) => ({ kind: 'sqlite', file }),
  redis:
    redisUrl === undefined
      ? undefined
      : (file) => ({ kind: 'redis', url: redisUrl, prefix: `order-${process.pid}`, file }),
  postgres:
    postgresUrl === undefined
      ? undefined
      : (file) => ({ kind: 'postgres', url: postgresUrl, schema: `order_${process.pid}`, file }),
}

for (const [name, placeOf] of Object.entries(places)) {
  if (placeOf === undefined) continue
  test(`${name}: workers are killed and stopped past their lease, and each key has all its effects, once and in order`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    await campaign(t, placeOf(join(folder, 'effects.db')), join(folder, 'record.ndjson'))
  })
}

if (backendUrl('nats') !== undefined) {
  test('nats: workers are killed and stopped and the server is restarted, and each key has all its effects, once and in order', async (t) => {
    const server = await startNats()
    t.after(() => server.stop())
    const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'effects.db')
    const place = { kind: 'nats', url: server.url, prefix: 'order', file } as const
    let restarts = 0
    await campaign(t, place, join(folder, 'record.ndjson'), async () => {
      restarts += 1
      await server.restart(restarts % 2 === 0 ? 'clean' : 'crash')
    })
  })
}

const sqsUrl = backendUrl('sqs elasticmq')
if (sqsUrl !== undefined) {
  test('sqs fifo: workers are killed and stopped past their lease, and each key has all its effects, once and in order', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const files = { file: join(folder, 'effects.db'), storeFile: join(folder, 'store.db') }
    const at = { url: sqsUrl, prefix: `order-${process.pid}-` }
    await campaign(t, { kind: 'sqs', ...at, ...files }, join(folder, 'record.ndjson'))
  })
}

const rabbitUrl = backendUrl('rabbitmq')
if (rabbitUrl !== undefined) {
  test('rabbitmq: workers are killed, stopped past their heartbeat and cut off, and each key has all its effects, once and in order', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const near = new URL(rabbitUrl)
    const proxy = await tcpProxy(Number(near.port === '' ? 5672 : near.port))
    t.after(() => proxy.close())
    near.hostname = '127.0.0.1'
    near.port = String(proxy.port)
    const prefix = `order-${process.pid}-`
    t.after(() => withChannel(rabbitUrl, (channel) => deleteLanes(channel, `${prefix}steps`, 5)))
    const files = { file: join(folder, 'effects.db'), storeFile: join(folder, 'store.db') }
    const place = { kind: 'rabbitmq', url: rabbitUrl, prefix, ...files } as const
    const ofWorkers = { ...place, url: near.href }
    const cut = async (): Promise<void> => proxy.cut()
    await campaign(t, place, join(folder, 'record.ndjson'), cut, ofWorkers)
  })
}
