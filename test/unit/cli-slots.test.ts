import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { sqliteStore } from 'millrace/store'
import { connectStore } from '../stores/store-harness.ts'
import { ordersConfig, project } from './cli-project.ts'

test('slots: what is taken of the limits, of the queue and of its keys', async (t) => {
  const { folder, write, run } = await project(t)
  const plain = ordersConfig(folder)
  await write('millrace.config.ts', plain)
  assert.equal((await run('migrate')).code, 0)
  assert.match((await run('slots', 'orders')).stderr, /no queue has a concurrencyLimit/)

  const limit = '{ max: 5, perKey: { key: ({ orderId }) => orderId, max: 2 } }'
  await write(
    'limited.config.ts',
    plain.replace('  retry:', `  concurrencyLimit: ${limit},\n  retry:`),
  )
  const config = ['--config', 'limited.config.ts']
  assert.equal((await run('migrate', ...config)).code, 0)
  const store = await connectStore(sqliteStore({ file: join(folder, 'orders.db') }))
  const held = ['k1', 'k2', 'k1'].map((key, n) => ({ holder: `h${n}`, key }))
  await store.slots.acquire('flow:slots:orders', { max: 5, maxPerKey: 2 }, held, 60_000)
  await store.close()
  const { code, stdout } = await run('slots', ...config)
  assert.equal(code, 0)
  assert.deepEqual(
    stdout.split('\n').map((line) => line.trimEnd()),
    [
      'QUEUE   KEY  TAKEN  OF',
      'orders  -        3   5',
      'orders  k1       2   2',
      'orders  k2       1   2',
      '',
    ],
  )
  const json = JSON.parse((await run('slots', 'orders', '--json', ...config)).stdout)
  assert.deepEqual(json, [
    {
      ...{ queue: 'orders', held: 3, max: 5, maxPerKey: 2 },
      keys: [
        { key: 'k1', held: 2 },
        { key: 'k2', held: 1 },
      ],
    },
  ])
})
