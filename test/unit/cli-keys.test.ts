import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { createMillrace, defineQueue, PermanentError, silentLogger } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { until } from '../transports/until.ts'
import { ordersConfig, project } from './cli-project.ts'

test('keys show: one halted key in full, and exit code 1 for one that is not halted', async (t) => {
  const { folder, write, run } = await project(t)
  const order = "orderingKey: ({ orderId }) => orderId.slice(0, 1), onDead: 'halt-key', $&"
  await write('millrace.config.ts', ordersConfig(folder).replace(/retry: .*/, order))
  assert.equal((await run('migrate')).code, 0)
  const orders = defineQueue({
    name: 'orders',
    owner: 'team-shop',
    payload: z.object({ orderId: z.string() }),
    orderingKey: ({ orderId }) => orderId.slice(0, 1),
    onDead: 'halt-key',
  })
  const app = await createMillrace({
    transport: sqlite({ file: join(folder, 'orders.db') }),
    ...{ queues: [orders], logger: silentLogger },
  })
  t.after(() => app.close({ timeoutMs: 0 }))
  app.work(orders, ({ payload }) => {
    if (payload.orderId === 'a1') throw new PermanentError('no such customer')
  })
  const sent = ['a1', 'a2', 'a3', 'b1'].map((orderId) => ({ orderId }))
  const [dead] = await app.sendBatch(orders, sent)
  await app.start()
  await until('a halted', async () => (await app.admin.keys.show(orders, 'a')) !== null)

  const shown = await run('keys', 'show', 'orders', 'a')
  assert.deepEqual([shown.code, shown.stderr], [0, ''])
  const [key, queue, haltedAt, ...rest] = shown.stdout.split('\n')
  assert.deepEqual([key, queue], ['key          a', 'queue        orders'])
  assert.match(haltedAt ?? '', /^halted at {4}\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  assert.deepEqual(rest, ['waiting      2', `dead letter  ${dead?.id}`, ''])
  const asJson = await run('keys', 'show', 'orders', 'a', '--json')
  assert.deepEqual([asJson.code, asJson.stderr], [0, ''])
  assert.deepEqual(JSON.parse(asJson.stdout), await app.admin.keys.show(orders, 'a'))

  const notHalted = 'millrace: key "b" of queue "orders" is not halted\n'
  const missing = await run('keys', 'show', 'orders', 'b')
  assert.deepEqual(missing, { code: 1, stdout: '', stderr: notHalted })
  const missingJson = await run('keys', 'show', 'orders', 'b', '--json')
  assert.deepEqual(missingJson, { code: 1, stdout: 'null\n', stderr: notHalted })
  const noQueue = await run('keys', 'show', 'order', 'a')
  assert.equal(noQueue.code, 2)
  assert.match(noQueue.stderr, /did you mean "orders"\?/)

  assert.equal((await run('keys', 'skip', 'orders', 'a')).code, 0)
  assert.equal((await run('keys', 'show', 'orders', 'a')).code, 1)
})
