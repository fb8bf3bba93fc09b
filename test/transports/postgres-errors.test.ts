import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type App, createMillrace, defineQueue, hasCode, MillraceError } from 'millrace'
import { postgresInbox } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { postgresOutbox } from 'millrace/outbox'
import { postgres } from 'millrace/postgres'
import { z } from 'zod'
import { systemClock } from '../../src/model/clock.ts'
import type { ErrorCode } from '../../src/model/errors.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { quoteIdentifier } from '../../src/sql/pg-name.ts'
import { tcpProxy } from '../faults/tcp-proxy.ts'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'
import { until } from './until.ts'

const [server] = postgresServers()
if (server === undefined) test('errors of postgres', { skip: NO_SERVER }, () => {})

const notes = defineQueue({
  name: 'notes',
  owner: 'team-notes',
  payload: z.string(),
  retry: { attempts: 1 },
})

function open(url: string, schema: string): Promise<App> {
  return createMillrace({
    transport: postgres({ url, schema, listen: false }),
    queues: [notes],
    logger: silentLogger,
  })
}

/** Why an app could not be made, and that trying again is of no use. */
async function refusalOf(url: string, schema: string, code: ErrorCode): Promise<string> {
  const error: unknown = await open(url, schema).then(
    () => assert.fail('it was made'),
    (cause: unknown) => cause,
  )
  assert.ok(error instanceof MillraceError, String(error))
  assert.deepEqual([error.code, error.retryable], [code, false], error.message)
  return error.message
}

/** An app with a proxy before its server. */
async function scene(t: TestContext, url: string) {
  const far = new URL(url)
  const proxy = await tcpProxy(Number(far.port))
  far.port = String(proxy.port)
  const schema = freshSchema()
  const app = await open(far.href, schema)
  t.after(async () => {
    await app.close({ timeoutMs: 0 })
    await proxy.close()
    await dropSchema(url, schema)
  })
  return { app, proxy }
}

if (server !== undefined) {
  const { url } = server
  test('a connection that breaks under the administration is an error of ours, and says whether it may have happened', async (t) => {
    const { app, proxy } = await scene(t, url)
    const { admin } = app
    const { id } = await app.send(notes, 'a')
    const acts: Readonly<Record<string, readonly [() => Promise<unknown>, string]>> = {
      stats: [() => admin.stats(notes), 'MILLRACE_UNAVAILABLE'],
      pause: [() => admin.pause(notes), 'MILLRACE_OUTCOME_UNKNOWN'],
      resume: [() => admin.resume(notes), 'MILLRACE_OUTCOME_UNKNOWN'],
      get: [() => admin.messages.get(notes, id), 'MILLRACE_UNAVAILABLE'],
      cancel: [() => admin.messages.cancel(notes, id), 'MILLRACE_OUTCOME_UNKNOWN'],
      list: [() => admin.deadLetters.list(notes), 'MILLRACE_UNAVAILABLE'],
      show: [() => admin.deadLetters.show(notes, id), 'MILLRACE_UNAVAILABLE'],
      audit: [() => admin.deadLetters.audit(notes), 'MILLRACE_UNAVAILABLE'],
      redrive: [() => admin.deadLetters.redrive(notes, { ids: [id] }), 'MILLRACE_UNAVAILABLE'],
      discard: [
        () => admin.deadLetters.discard(notes, { ids: [id], reason: 'old' }),
        'MILLRACE_OUTCOME_UNKNOWN',
      ],
    }
    for (const [name, [act, code]] of Object.entries(acts)) {
      // What was cut before is replaced, so that the act is on its way before the next cut.
      await until('a good connection', () =>
        admin.stats(notes).then(
          () => true,
          () => false,
        ),
      )
      proxy.block('down')
      const failed = act().then(
        () => assert.fail(`${name} was answered`),
        (error: unknown) => error,
      )
      await turn()
      proxy.cut()
      await proxy.heal()
      const error = await failed
      assert.ok(hasCode(error, code as 'MILLRACE_UNAVAILABLE'), `${name}: ${String(error)}`)
      assert.match(String(error), /queue "notes": the backend .*(onnection|ECONNRESET)/)
    }
  })

  test('a start while the server is away is an error of ours, and may be tried again', async (t) => {
    const { app, proxy } = await scene(t, url)
    app.work(notes, () => undefined)
    proxy.refuse()
    proxy.cut()
    await assert.rejects(app.start(), (error: unknown) => {
      assert.ok(hasCode(error, 'MILLRACE_UNAVAILABLE'), String(error))
      assert.match(String(error), /queue "notes": the backend did not answer .*try again/)
      return true
    })
    await proxy.heal()
    await until('a start', () =>
      app.start().then(
        () => true,
        () => false,
      ),
    )
  })

  test('missing rights, accounts and databases are named as such when the app is made', async (t) => {
    const owner = nodePool(url)
    const [role, schema] = [`reader_${process.pid}`, freshSchema()]
    await owner.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`)
    const full = await open(url, schema)
    await full.close()
    await owner.query(`GRANT USAGE ON SCHEMA ${quoteIdentifier(schema)} TO ${role}`)
    await owner.query(`GRANT SELECT ON ALL TABLES IN SCHEMA ${quoteIdentifier(schema)} TO ${role}`)
    t.after(async () => {
      await dropSchema(url, schema)
      await owner.query(`DROP ROLE ${role}`)
      await owner.end()
    })
    const as = (change: (to: URL) => void): string => {
      const to = new URL(url)
      change(to)
      return to.href
    }
    const reader = as((to) => {
      to.username = role
      to.password = 'x'
    })
    const select = await refusalOf(reader, schema, 'MILLRACE_DENIED')
    assert.match(select, /42501: permission denied for .*millrace migrate --print-sql/)
    const create = await refusalOf(reader, freshSchema(), 'MILLRACE_DENIED')
    assert.match(create, /42501: permission denied for database .*millrace migrate --print-sql/)
    const nobody = as((to) => {
      to.username = 'nobody_here'
    })
    const account = await refusalOf(nobody, schema, 'MILLRACE_DENIED')
    assert.match(account, /28...: .*check user and password/)
    const nowhere = as((to) => {
      to.pathname = '/nowhere_at_all'
    })
    const database = await refusalOf(nowhere, schema, 'MILLRACE_UNAVAILABLE')
    assert.match(database, /3D000: .*create it, or correct the name/)
  })

  test('a worker that was stopped in ctx.tx and wakes up without its connection has lost its lease', async (t) => {
    const pool = nodePool(url)
    const schema = freshSchema()
    const clock = systemClock()
    let sleptMs = 0
    const app = await createMillrace({
      transport: postgres({ pool, schema, listen: false }),
      inbox: postgresInbox({ pool, schema }),
      queues: [notes],
      logger: silentLogger,
      clock: { ...clock, now: () => clock.now() + sleptMs },
    })
    t.after(async () => {
      await app.close({ timeoutMs: 0 })
      await pool.end()
      await dropSchema(url, schema)
    })
    const thrown = Promise.withResolvers<unknown>()
    app.work(notes, async (_, ctx) => {
      const effect = ctx.tx(async (tx) => {
        sleptMs = 3_600_000
        await tx.query('SELECT pg_terminate_backend(pg_backend_pid())')
      })
      await effect.catch(thrown.resolve)
    })
    await app.start()
    await app.send(notes, 'a')
    const error = await thrown.promise
    assert.ok(hasCode(error, 'MILLRACE_LEASE_LOST'), String(error))
  })
  test('a send in a transaction that an earlier error has aborted says so, and what to do', async (t) => {
    const pool = nodePool(url)
    const schema = freshSchema()
    const inside = await open(url, schema)
    const beside = await createMillrace({
      transport: memory(),
      outbox: postgresOutbox({ pool, schema }),
      queues: [notes],
      logger: silentLogger,
    })
    const tx = await pool.connect()
    t.after(async () => {
      tx.release(true)
      await Promise.all([inside.close(), beside.close()])
      await pool.end()
      await dropSchema(url, schema)
    })
    for (const app of [inside, beside]) {
      // Before it is known whose transaction it is, and after.
      for (const known of [false, true]) {
        await tx.query('BEGIN')
        if (known) await app.send(notes, 'a', { tx })
        await assert.rejects(tx.query('SELECT 1 / 0'))
        const sends = [
          () => app.send(notes, 'b', { tx }),
          () => app.sendBatch(notes, ['c'], { tx }),
        ]
        for (const send of sends) {
          await assert.rejects(send, (error: unknown) => {
            assert.ok(hasCode(error, 'MILLRACE_BACKEND_FAULT'), String(error))
            assert.match(String(error), /aborted by the error of an earlier .*25P02.* roll it back/)
            return true
          })
        }
        await tx.query('ROLLBACK')
      }
    }
    assert.equal((await inside.admin.stats(notes)).depth, 0)
  })
}
