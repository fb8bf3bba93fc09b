import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { createMillrace, defineQueue, type MillraceOptions, silentLogger } from 'millrace'
import { kafka } from 'millrace/kafka'
import { nats } from 'millrace/nats'
import { rabbitmq } from 'millrace/rabbitmq'
import { sqs } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { type BackendName, backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { limitedRuns } from './limited-runs.ts'

type Connector = MillraceOptions['transport']

const account = {
  region: 'elasticmq',
  credentials: { accessKeyId: 'x', secretAccessKey: 'x' },
} as const

const brokers: readonly (readonly [string, BackendName, (url: string) => Connector])[] = [
  ['rabbitmq', 'rabbitmq', (url) => rabbitmq({ url })],
  ['nats', 'nats', (url) => nats({ servers: url })],
  ['sqs', 'sqs elasticmq', (endpoint) => sqs({ ...account, endpoint })],
  ['kafka, held', 'kafka', (broker) => kafka({ brokers: [broker], retry: 'hold' })],
  ['kafka, parked', 'kafka', (broker) => kafka({ brokers: [broker], retry: 'park' })],
]

const MESSAGES = 40

for (const [name, backend, connector] of brokers) {
  const url = backendUrl(backend)
  if (url === undefined) continue
  test(`${name}: two processes keep to one limit through a store, and waiting costs no attempt`, async (t) => {
    const queue = defineQueue({
      name: `limited-${process.pid}-${Date.now().toString(36)}`,
      owner: 'team-flow',
      payload: z.object({ tenant: z.string(), n: z.number() }),
      concurrencyLimit: { max: 3, perKey: { key: ({ tenant }) => tenant, max: 1 } },
    })
    const store = memoryStore()
    const { seen, began, ended } = limitedRuns()
    const attempts = new Set<number>()
    const open = async () => {
      const parts = { transport: connector(url), store, queues: [queue], logger: silentLogger }
      const app = await createMillrace(parts)
      t.after(() => app.close({ timeoutMs: 5_000 }))
      app.work(
        queue,
        async ({ payload, attempt }) => {
          attempts.add(attempt)
          began(payload)
          await wait(30)
          ended(payload)
        },
        { concurrency: 6 },
      )
      return app
    }
    const apps = [await open(), await open()]
    const [app] = apps
    assert.ok(app)
    await app.sendBatch(
      queue,
      Array.from({ length: MESSAGES }, (_, n) => ({ tenant: `t${n % 4}`, n })),
    )
    for (const one of apps) await one.start()
    const handled = () => new Set(seen.runs.map(({ n }) => n)).size === MESSAGES
    await until('all are handled', handled, 60_000)
    assert.ok(seen.most <= 3, `${seen.most} of 3`)
    assert.equal(seen.mostOfKey, 1)
    assert.deepEqual([...attempts], [1])
    await until('no slot is held', async () => (await app.admin.slots(queue))?.held === 0)
  })
}
