import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PermanentError, silentLogger } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { main } from '../../src/cli/main.ts'
import { until } from '../transports/until.ts'
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

test('a queue that is full behind a halted key: a redrive of another letter says that it waits, the key is resumed', async (t) => {
  const made = await project(t)
  const order = `retry: { attempts: 2, baseMs: 1, maxMs: 1 },
  orderingKey: ({ orderId }) => orderId.slice(0, 1), onDead: 'halt-key', capacity: { maxDepth: 1 },`
  const config = ordersConfig(made.folder).replace(/retry: .*/, order)
  await made.write('millrace.config.ts', config)
  assert.equal((await made.run('migrate')).code, 0)
  const orders = defineQueue({
    name: 'orders',
    owner: 'team-shop',
    payload: z.object({ orderId: z.string() }),
    orderingKey: ({ orderId }) => orderId.slice(0, 1),
    onDead: 'halt-key',
    capacity: { maxDepth: 1 },
  })
  const app = await createMillrace({
    transport: sqlite({ file: join(made.folder, 'orders.db') }),
    ...{ queues: [orders], logger: silentLogger },
  })
  t.after(() => app.close({ timeoutMs: 0 }))
  app.work(orders, () => {
    throw new PermanentError('no such customer')
  })
  await app.start()
  for (const orderId of ['a1', 'b1']) {
    const { id } = await app.send(orders, { orderId })
    await until('it died', async () => (await app.admin.deadLetters.show(orders, id)) !== null)
  }
  await app.admin.keys.skip(orders, { keys: ['b'] })
  await app.send(orders, { orderId: 'a2' })
  const [b] = (await app.admin.deadLetters.list(orders)).items

  const stops = new AbortController()
  let said = ''
  const code = await main(['dlq', 'redrive', 'orders', b?.id ?? 'none'], {
    stdout: { write: () => undefined },
    stderr: {
      write: (text) => {
        said += text
        stops.abort()
      },
    },
    stdin: process.stdin,
    ...{ env: {}, cwd: made.folder, signal: stops.signal },
  })
  assert.equal(code, 1)
  assert.match(
    said,
    /^millrace: queue orders is full, the redrive waits for room; .*millrace keys ls orders\n/,
  )
  const resumed = await made.run('keys', 'resume', 'orders', 'a')
  assert.deepEqual([resumed.code, resumed.stdout], [0, 'resumed 1 of 1\n'])
})

test('dlq redrive says that it is out of order where keys go on after a death, and nowhere else', async (t) => {
  const note = /^millrace: out of order: queue orders has onDead: 'continue', .*\n$/
  for (const [onDead, expected] of [
    ['continue', note],
    ['halt-key', /^$/],
  ] as const) {
    const made = await project(t)
    const order = `orderingKey: ({ orderId }) => orderId.slice(0, 1), onDead: '${onDead}', $&`
    await made.write('millrace.config.ts', ordersConfig(made.folder).replace(/retry: .*/, order))
    assert.equal((await made.run('migrate')).code, 0)
    await buryOrdered(t, made, onDead)
    const dry = await made.run('dlq', 'redrive', 'orders', '--all', '--dry-run')
    assert.deepEqual([dry.code, dry.stdout], [0, '1 would be moved\n'])
    assert.match(dry.stderr, expected)
    const moved = await made.run('dlq', 'redrive', 'orders', '--all', '--json')
    assert.deepEqual(JSON.parse(moved.stdout), { matched: 1, moved: 1, notFound: [] })
    assert.match(moved.stderr, expected)
    const nothing = await made.run('dlq', 'redrive', 'orders', '--all')
    assert.deepEqual(nothing, { code: 0, stdout: 'moved 0 of 0\n', stderr: '' })
  }
  const { run, ids } = await shop(t)
  const [id = ''] = ids
  assert.equal((await run('dlq', 'redrive', 'orders', id, '--force')).stderr, '')
  assert.match((await run('help', 'dlq', 'redrive')).stdout, /onDead: 'continue'.* out of order/)
})

/** One message with an ordering key, which dies. */
async function buryOrdered(
  t: TestContext,
  { folder }: Project,
  onDead: 'continue' | 'halt-key',
): Promise<void> {
  const orders = defineQueue({
    name: 'orders',
    owner: 'team-shop',
    payload: z.object({ orderId: z.string() }),
    orderingKey: ({ orderId }) => orderId.slice(0, 1),
    onDead,
  })
  const app = await createMillrace({
    transport: sqlite({ file: join(folder, 'orders.db') }),
    ...{ queues: [orders], logger: silentLogger },
  })
  t.after(() => app.close({ timeoutMs: 0 }))
  app.work(orders, () => {
    throw new PermanentError('no such customer')
  })
  const { id } = await app.send(orders, { orderId: 'a1' })
  await app.start()
  await until('it died', async () => (await app.admin.deadLetters.show(orders, id)) !== null)
  await app.close()
}
