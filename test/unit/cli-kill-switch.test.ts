import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, type Logger, silentLogger } from 'millrace'
import { memory } from 'millrace/memory'
import { sqlite } from 'millrace/sqlite'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { z } from 'zod'
import { storeToMigrate } from '../../src/runtime/own-store.ts'
import { until } from '../transports/until.ts'
import { ordersConfig, type Project, project } from './cli-project.ts'

const STORE = /^-- store, version 1$/m

/** A migrated project without a kill switch, and a config file with one beside it. */
async function withSwitch(t: TestContext): Promise<Project> {
  const made = await project(t)
  const plain = ordersConfig(made.folder)
  await made.write('millrace.config.ts', plain)
  assert.equal((await made.run('migrate')).code, 0)
  const worker = 'defineWorker(orders, () => undefined'
  await made.write('switch.config.ts', plain.replace(worker, `${worker}, { killSwitch: true }`))
  return made
}

/** An app whose handler fails alike until it is mended, so that its kill switch stops it; there are 50 messages. */
async function brokenConsumer(t: TestContext, folder: string, logger: Logger) {
  const payload = z.object({ orderId: z.string() })
  const orders = defineQueue({ name: 'orders', owner: 'team-shop', payload })
  const app = await createMillrace({
    transport: sqlite({ file: join(folder, 'orders.db') }),
    ...{ queues: [orders], logger, migrate: 'check' as const },
  })
  t.after(() => app.close({ timeoutMs: 2_000 }))
  let broken = true
  let ok = 0
  const handler = (): void => {
    if (broken) throw new TypeError('x is not a function')
    ok += 1
  }
  app.work(orders, handler, { killSwitch: { failures: 2, resumeAfterMs: 600_000 } })
  await app.sendBatch(
    orders,
    Array.from({ length: 50 }, () => ({ orderId: 'a' })),
  )
  await app.start()
  const mend = (): void => {
    broken = false
  }
  return { app, mend, done: () => ok }
}

const chosen = ['--config', 'switch.config.ts']

test('migrate makes the tables in which a consumer that its kill switch stopped hears of a resume', async (t) => {
  const { run } = await withSwitch(t)
  assert.doesNotMatch((await run('migrate', '--print-sql')).stdout, STORE)
  assert.match((await run('migrate', '--print-sql', ...chosen)).stdout, STORE)
  const check = await run('migrate', '--check', ...chosen)
  assert.equal(check.code, 1)
  assert.match(check.stdout, /the store schema has version 0.*run `millrace migrate`/)
  assert.equal((await run('migrate', ...chosen)).code, 0)
  assert.equal((await run('migrate', '--check', ...chosen)).code, 0)
})

test('resume says when consumers that a kill switch stopped cannot hear of it, and reaches them once they can', async (t) => {
  const { run, folder } = await withSwitch(t)
  const deaf = await run('resume', 'orders', ...chosen)
  assert.deepEqual([deaf.code, deaf.stdout], [0, 'resumed orders\n'])
  assert.match(
    deaf.stderr,
    /does not hear of it: the tables of the store are missing; run millrace/,
  )
  assert.equal((await run('resume', 'orders')).stderr, '', 'there is no kill switch')

  assert.equal((await run('migrate', ...chosen)).code, 0)
  const { app, mend, done } = await brokenConsumer(t, folder, silentLogger)
  await until('a stopped consumer', async () => !(await app.health()).ok)
  mend()
  await until('a consumer that goes on', async () => {
    assert.equal((await run('resume', 'orders', ...chosen)).stderr, '')
    return done() > 0
  })
})

test('who follows the log, migrates and resumes at once, is heard: one resume is enough', async (t) => {
  const { run, folder } = await withSwitch(t)
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const { mend, done } = await brokenConsumer(t, folder, logger)
  await until('the warning', () => lines.some((line) => /hears of no resume/.test(line)))
  mend()
  assert.equal((await run('migrate', ...chosen)).code, 0)
  const { code, stderr } = await run('resume', 'orders', ...chosen)
  assert.deepEqual([code, stderr], [0, ''])
  await until('a consumer that goes on', () => done() > 0)
})

test('without the tables the log says what makes them', async (t) => {
  const { folder } = await withSwitch(t)
  const payload = z.object({ orderId: z.string() })
  const orders = defineQueue({ name: 'orders', owner: 'team-shop', payload })
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const app = await createMillrace({
    transport: sqlite({ file: join(folder, 'orders.db') }),
    ...{ queues: [orders], logger, migrate: 'check' as const },
  })
  t.after(() => app.close({ timeoutMs: 2_000 }))
  const broken = (): never => {
    throw new TypeError('x is not a function')
  }
  app.work(orders, broken, { killSwitch: { failures: 2 } })
  await app.sendBatch(
    orders,
    Array.from({ length: 20 }, () => ({ orderId: 'a' })),
  )
  await app.start()
  const isSaid = (): boolean => lines.some((line) => /hears of no resume/.test(line))
  await until('the warning', isSaid)
  assert.match(lines.join('\n'), /millrace migrate makes these tables where the config file has/)
})

test('of workers that share a config file one with a kill switch is enough, and one that has it off is none', () => {
  const from = { transport: sqlite({ file: 'orders.db' }), queues: [] }
  assert.notEqual(storeToMigrate({ ...from, workers: [{}, { killSwitch: true }] }), undefined)
  assert.notEqual(
    storeToMigrate({ ...from, workers: [{ killSwitch: { failures: 2 } }] }),
    undefined,
  )
  assert.equal(storeToMigrate({ ...from, workers: [{ killSwitch: false }, {}] }), undefined)
  assert.equal(storeToMigrate(from), undefined)
})

test('a store that cannot be opened for another reason is said to be given, and opened again, and closed with the app', async (t) => {
  const kept = memoryStore()
  const seen = { opened: 0, closed: 0 }
  const transport = {
    ...memory(),
    ownStore: (): StoreConnector => ({
      ...kept,
      connect: async (context) => {
        seen.opened += 1
        if (seen.opened === 1) throw new Error('no right to connect')
        const store = await kept.connect(context)
        const close = (): Promise<void> => {
          seen.closed += 1
          return store.close()
        }
        return { ...store, close }
      },
    }),
  }
  const payload = z.object({ orderId: z.string() })
  const orders = defineQueue({ name: 'orders', owner: 'team-shop', payload })
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const app = await createMillrace({ transport, queues: [orders], logger })
  t.after(() => app.close({ timeoutMs: 2_000 }))
  const broken = (): never => {
    throw new TypeError('x is not a function')
  }
  app.work(orders, broken, { killSwitch: { failures: 2 } })
  await app.sendBatch(
    orders,
    Array.from({ length: 20 }, () => ({ orderId: 'a' })),
  )
  await app.start()
  await until('the warning', () => lines.some((line) => /hears of no resume/.test(line)))
  assert.match(lines.join('\n'), /no right to connect.*; give createMillrace a store/)
  await until('a second try', () => seen.opened === 2)
  await app.close({ timeoutMs: 2_000 })
  assert.deepEqual(seen, { opened: 2, closed: 1 })
})

/** A config file in which the worker of `orders` has a kill switch and that of `mails` has none. */
function twoQueues(transport: string): string {
  return `
import { defineConfig, defineQueue, defineWorker } from 'millrace'
import { memory } from 'millrace/memory'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'

const basics = { owner: 'team-shop', payload: z.object({}) }
const orders = defineQueue({ name: 'orders', ...basics })
const mails = defineQueue({ name: 'mails', ...basics })
export default defineConfig({
  transport: ${transport},
  queues: [orders, mails],
  workers: [defineWorker(orders, () => undefined, { killSwitch: true }), defineWorker(mails, () => undefined)],
})
`
}

test('resume says nothing of kill switches of other queues, nor where no other process can be', async (t) => {
  const { run, write, folder } = await withSwitch(t)
  const file = JSON.stringify(join(folder, 'orders.db'))
  await write('two.config.ts', twoQueues(`sqlite({ file: ${file} })`))
  const two = ['--config', 'two.config.ts']
  // The queue is new to the database.
  assert.equal((await run('send', 'mails', '{}', ...two)).code, 0)
  assert.equal((await run('resume', 'mails', ...two)).stderr, '')
  assert.match((await run('resume', 'orders', ...two)).stderr, /tables of the store are missing/)
  await write('memory.config.ts', twoQueues('memory()'))
  const { stderr } = await run('resume', 'orders', '--config', 'memory.config.ts')
  assert.match(stderr, /^millrace: memory.config.ts uses the memory transport[^\n]*\n$/)
})

test('resume says so when consumers have no store between them', async (t) => {
  const { run, write } = await withSwitch(t)
  // As of a broker: a transport that is no store.
  const broker = "{ name: 'broker', connect: (context) => memory().connect(context) }"
  await write('broker.config.ts', twoQueues(broker))
  const { code, stderr } = await run('resume', 'orders', '--config', 'broker.config.ts')
  assert.equal(code, 0)
  assert.match(stderr, /does not hear of it: there is no store between the processes; name one\n$/)
})
