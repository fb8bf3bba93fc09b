import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, hasCode } from 'millrace'
import { postgres } from 'millrace/postgres'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import type { PgAddress } from '../../src/sql/pg-open.ts'
import { tcpProxy } from '../faults/tcp-proxy.ts'
import {
  dropSchema,
  freshSchema,
  jsPool,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'
import { until } from './until.ts'

const [server] = postgresServers()
if (server === undefined) test('a postgres that answers nothing', { skip: NO_SERVER }, () => {})

const notes = defineQueue({ name: 'notes', owner: 'team-notes', payload: z.string() })

interface Client {
  readonly address: PgAddress
  end(): Promise<unknown>
}

const clients: Readonly<Record<string, (url: string) => Client>> = {
  'an address': (url) => ({ address: { url }, end: async () => {} }),
  'a pool of pg': (url) => {
    const pool = nodePool(url)
    return { address: { pool }, end: () => pool.end() }
  },
  'a sql of postgres.js': (url) => {
    const pool = jsPool(url)
    return { address: { pool }, end: () => pool.end({ timeout: 0 }) }
  },
}

/** An app with a proxy before its server; `near` goes around the proxy. */
async function scene(
  t: TestContext,
  url: string,
  open: (url: string) => Client,
  timeoutMs: number,
) {
  const far = new URL(url)
  const proxy = await tcpProxy(Number(far.port))
  far.port = String(proxy.port)
  const schema = freshSchema()
  const client = open(far.href)
  const make = (address: PgAddress, limitMs: number) =>
    createMillrace({
      transport: postgres({ ...address, schema, listen: false, timeoutMs: limitMs }),
      queues: [notes],
      logger: silentLogger,
    })
  const app = await make(client.address, timeoutMs)
  const near = await make({ url }, 30_000)
  t.after(async () => {
    await Promise.all([app.close({ timeoutMs: 0 }), near.close({ timeoutMs: 0 })])
    await proxy.close()
    await client.end()
    await dropSchema(url, schema)
  })
  await app.send(notes, 'warm')
  // Several connections are open now, so that the next statement is sent at once, whoever else wants one (NOTIFY).
  await Promise.all(Array.from({ length: 6 }, () => app.admin.stats(notes)))
  const stored = async (id: unknown): Promise<boolean> => {
    assert.equal(typeof id, 'string')
    return (await near.admin.messages.get(notes, String(id))) !== null
  }
  return { app, near, proxy, stored }
}

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => assert.fail('it was answered'),
    (error: unknown) => error,
  )

const messageIdOf = (error: unknown): unknown =>
  hasCode(error, 'MILLRACE_OUTCOME_UNKNOWN') && error instanceof Error && 'fields' in error
    ? (error.fields as { readonly messageId?: unknown }).messageId
    : assert.fail(`expected MILLRACE_OUTCOME_UNKNOWN, got ${String(error)}`)

for (const [client, open] of Object.entries(server === undefined ? {} : clients)) {
  const { url } = server ?? assert.fail()
  /** postgres.js waits for an answer between parsing and executing, so that nothing can be there. */
  const executes = client !== 'a sql of postgres.js'

  for (const how of ['send', 'sendBatch'] as const) {
    test(`${client}: no answer to what ${how} sent is an unknown outcome, and the message may be there`, async (t) => {
      const { app, proxy, stored } = await scene(t, url, open, 500)
      proxy.block('down')
      const sending = how === 'send' ? app.send(notes, 'a') : app.sendBatch(notes, ['a', 'b'])
      const error = await failureOf(sending)
      const id = messageIdOf(error)
      assert.match(String(error), /did not answer within 500 ms.*send again with the same id/)
      if (executes) await until('it to be stored', () => stored(id))
    })
  }

  test(`${client}: no answer before anything was sent means that nothing was stored`, async (t) => {
    const { app, near, proxy } = await scene(t, url, open, 500)
    proxy.block('down')
    const keyed = await failureOf(app.send(notes, 'in a transaction', { idempotencyKey: 'k' }))
    assert.ok(hasCode(keyed, 'MILLRACE_UNAVAILABLE'), String(keyed))
    assert.equal((await near.admin.stats(notes)).depth, 1)
  })

  test(`${client}: a send that the close of the app cuts off is an unknown outcome too`, async (t) => {
    const { app, near, proxy } = await scene(t, url, open, 30_000)
    proxy.block('down')
    const sending = failureOf(app.send(notes, 'one'))
    if (executes) {
      await until('it to be stored', async () => (await near.admin.stats(notes)).depth === 2)
    }
    await app.close({ timeoutMs: 0 })
    const error = await sending
    messageIdOf(error)
    assert.match(String(error), /closed before it answered/)
  })
}
