import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PermanentError, silentLogger } from 'millrace'
import { kafka } from 'millrace/kafka'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { startKafka } from '../../scripts/rig/kafka-server.ts'
import { backendUrl } from '../backends.ts'
import { cli, cliFolder } from '../transports/cli-folder.ts'
import { until } from '../transports/until.ts'
import { spoil } from './kafka-spoil.ts'

const orders = defineQueue({
  name: 'orders',
  owner: 'team-x',
  payload: z.object({ item: z.string() }),
})
const PROBLEM =
  /^kafka: the record batch at offset 1 of topic "orders\.dead" cannot be read, its checksum \(CRC\) is wrong; the dead letters in it are missing/

test('Dead letters that cannot be read are missed in the open: health says so, and dlq ls ends with 1.', {
  skip: backendUrl('kafka') === undefined,
}, async (t) => {
  const server = await startKafka()
  t.after(() => server.stop())
  const [node] = server.nodes
  assert.ok(node)
  const brokers = server.brokers.join(',')
  const before = await opened(t, brokers)
  before.work(orders, ({ payload: { item } }) => {
    throw new PermanentError(item)
  })
  await before.start()
  for (const [n, item] of ['piano', 'lamp', 'chair'].entries()) {
    await before.send(orders, { item })
    const dead = async () => (await before.admin.stats(orders)).dead
    await until(`${item} to be dead`, async () => (await dead()) === n + 1, 60_000)
  }
  await before.close()
  await node.halt('clean')
  spoil(node, 'orders.dead-0', 1, (batch) => batch.writeUInt8(batch.readUInt8(70) ^ 0xff, 70))
  await node.resume()

  const { admin, health } = await opened(t, brokers)
  const { items } = await admin.deadLetters.list(orders)
  assert.deepEqual(
    items.map(({ payload }) => payload),
    [{ item: 'chair' }, { item: 'piano' }],
  )
  const { ok, reasons } = await health()
  assert.equal(ok, false)
  assert.equal(reasons.length, 1)
  assert.match(reasons[0] ?? '', PROBLEM)

  const cwd = await cliFolder(t, {
    ...{ transport: 'kafka', options: { brokers, retry: 'park', partitions: 2 }, withStore: true },
  })
  assert.equal(await cli(t, cwd, ['migrate']).ended, 0)
  const listing = cli(t, cwd, ['dlq', 'ls', 'orders'])
  assert.equal(await listing.ended, 1)
  assert.match(listing.output(), /^millrace: kafka: the record batch at offset 1 of topic/m)
  assert.match(listing.output(), /chair[\s\S]*piano/)
})

async function opened(t: TestContext, brokers: string) {
  const app = await createMillrace({
    transport: kafka({ brokers, retry: 'park', partitions: 2 }),
    queues: [orders],
    store: memoryStore(),
    logger: silentLogger,
  })
  t.after(() => app.close({ timeoutMs: 5_000 }))
  return app
}
