import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Connector, createMillrace, defineQueue, silentLogger } from 'millrace'
import { kafka } from 'millrace/kafka'
import { redis } from 'millrace/redis'
import { sqlite } from 'millrace/sqlite'
import { sqliteStore } from 'millrace/store'
import { z } from 'zod'
import { systemClock } from '../../src/model/clock.ts'
import { type BackendName, backendUrl } from '../backends.ts'
import { quick } from './kafka-harness.ts'
import { until } from './until.ts'

interface Subject {
  readonly title: string
  readonly server?: BackendName
  readonly connector: (url: string, folder: string) => Connector
}

const prefix = `undecodable-${process.pid}-${Date.now().toString(36)}-`
const subjects: readonly Subject[] = [
  { title: 'sqlite', connector: (_, folder) => sqlite({ file: join(folder, 'q.db') }) },
  { title: 'redis', server: 'redis 7', connector: (url) => redis({ url, prefix }) },
  {
    title: 'kafka, dead letters in a topic',
    server: 'kafka',
    connector: (url) =>
      kafka({ brokers: url.split(','), prefix, partitions: 1, retry: 'park', ...quick }),
  },
  {
    title: 'kafka, dead letters in the store',
    server: 'kafka',
    connector: (url) =>
      kafka({
        ...{ brokers: url.split(','), prefix: `${prefix}s-`, partitions: 1, ...quick },
        ...{ retry: 'hold', deadLetters: 'store' },
      }),
  },
]

/** No UTF-8, with a NUL, a byte order mark and something that looks like JSON. */
const spoiled = Buffer.from([0xef, 0xbb, 0xbf, 0xff, 0xfe, 0x00, 0x01, 0x7b, 0x7d, 0xc3])

for (const { title, server, connector } of subjects) {
  const url = server === undefined ? '' : backendUrl(server)
  if (url === undefined) continue
  test(`${title}: bytes that cannot be decoded are seen as they are, and a redrive puts them back.`, async (t) => {
    const folder = await folderOf(t)
    const transport = connector(url, folder)
    const orders = defineQueue({ name: 'orders', owner: 'team', payload: z.object({}) })
    const store = sqliteStore({ file: join(folder, 'store.db') })
    const open = async () => {
      const app = await createMillrace({ transport, store, queues: [orders], logger: silentLogger })
      t.after(() => app.close({ timeoutMs: 2_000 }))
      return app
    }
    const app = await open()
    app.work(orders, () => assert.fail('a handler ran with what cannot be decoded'))
    await app.start()
    await sendRaw(t, transport)
    const { deadLetters } = app.admin
    await until('it to die', async () => (await deadLetters.list(orders)).items.length > 0, 60_000)
    const [letter] = (await deadLetters.list(orders)).items
    assert.deepEqual(Buffer.from(letter?.bodyBase64 ?? '', 'base64'), spoiled)
    assert.equal(letter?.payload, spoiled.toString('utf8').slice(1))
    const { moved } = await deadLetters.redrive(orders, { ids: [letter.id] })
    assert.equal(moved, 1)
    const again = async () => (await deadLetters.show(orders, letter.id))?.redrives === 1
    await until('it to be tried again, and to die', again, 60_000)
    const shown = await deadLetters.show(orders, letter.id)
    assert.deepEqual(Buffer.from(shown?.bodyBase64 ?? '', 'base64'), spoiled)
  })
}

/** As another program would send them. */
async function sendRaw(t: TestContext, connector: Connector): Promise<void> {
  const { signal } = new AbortController()
  const context = { signal, clock: systemClock(), random: Math.random, logger: silentLogger }
  const transport = await connector.connect({ ...context, migrate: 'check' })
  t.after(() => transport.close())
  await transport.topology.ensure([{ name: 'orders', owner: 'team', maxDepth: undefined }], signal)
  const envelope = { id: 'raw-1', body: spoiled, headers: {}, priority: 0 }
  const [sent] = await transport.send('orders', [envelope], { signal })
  assert.equal(sent?.ok, true)
}

async function folderOf(t: TestContext): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'millrace-undecodable-'))
  t.after(() => rm(made, { recursive: true, force: true }))
  return made
}
