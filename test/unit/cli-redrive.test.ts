import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PermanentError, silentLogger } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { ordersConfig, type Project, project } from './cli-project.ts'

const YEAR_MS = 365 * 86_400_000

/** A project with an inbox and three messages that died a year ago. */
async function shop(t: TestContext): Promise<Project & { readonly ids: readonly string[] }> {
  const made = await project(t)
  const inbox = `inbox: sqliteInbox({ file: ${JSON.stringify(join(made.folder, 'shop.db'))} })`
  const config = ordersConfig(made.folder)
    .replace('import { sqlite }', "import { sqliteInbox } from 'millrace/inbox'\nimport { sqlite }")
    .replace('queues:', `${inbox}, queues:`)
  await made.write('millrace.config.ts', config)
  assert.equal((await made.run('migrate')).code, 0)
  const orders = defineQueue({
    name: 'orders',
    owner: 'team-shop',
    payload: z.object({ orderId: z.string() }),
  })
  const clock = virtualClock({ startMs: Date.now() - YEAR_MS })
  const app = await createMillrace({
    transport: sqlite({ file: join(made.folder, 'orders.db') }),
    queues: [orders],
    logger: silentLogger,
    clock,
  })
  app.work(orders, () => {
    throw new PermanentError('no such customer')
  })
  const sent = await app.sendBatch(
    orders,
    ['a', 'b', 'c'].map((orderId) => ({ orderId })),
  )
  await app.start()
  await clock.advance(1_000)
  assert.equal((await app.admin.stats(orders)).dead, 3)
  const closed = app.close({ timeoutMs: 0 })
  await clock.advance(1_000)
  await closed
  return { ...made, ids: sent.map(({ id }) => id) }
}

test('dlq redrive: what is older than the inbox remembers asks for --force', async (t) => {
  const { run } = await shop(t)
  const refused = await run('dlq', 'redrive', 'orders', '--all')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /^millrace: .*nothing was moved.*\[MILLRACE_REDRIVE_TOO_OLD\]\n$/)
  const forced = await run('dlq', 'redrive', 'orders', '--all', '--force')
  assert.deepEqual([forced.code, forced.stdout], [0, 'moved 3 of 3\n'])
})

test('dlq redrive: who did it and why is in the audit', async (t) => {
  const { run, ids } = await shop(t)
  const [id = ''] = ids
  const why = ['--reason', 'the customer is there now', '--force']
  assert.equal((await run('dlq', 'redrive', 'orders', id, ...why)).code, 0)
  const [entry] = JSON.parse((await run('dlq', 'audit', 'orders', '--json')).stdout)
  assert.deepEqual(
    [entry.act, entry.messageId, entry.actor, entry.reason],
    ['redrive', id, 'cli:ada', 'the customer is there now'],
  )
})

test('dlq redrive: --rate spreads what goes back', async (t) => {
  const { run } = await shop(t)
  const startedAt = performance.now()
  const { stdout } = await run('dlq', 'redrive', 'orders', '--all', '--force', '--rate', '1')
  assert.equal(stdout, 'moved 3 of 3\n')
  // Between three messages are two pauses of a second, less what the backend took.
  assert.ok(performance.now() - startedAt >= 1_900)
})

test('dlq redrive: what is chosen twice is wrong use, and nothing moves', async (t) => {
  const { run, ids } = await shop(t)
  const [id = ''] = ids
  for (const more of [['--all'], ['--class', 'permanent']]) {
    const both = await run('dlq', 'redrive', 'orders', id, '--force', ...more)
    assert.deepEqual([both.code, both.stdout], [2, ''])
    assert.match(both.stderr, /takes ids, or --all, or --class/)
  }
  const { items } = JSON.parse((await run('dlq', 'ls', 'orders', '--json')).stdout)
  assert.equal(items.length, 3)
})
