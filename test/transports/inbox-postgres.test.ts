import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { createMillrace, defineQueue } from 'millrace'
import { postgresInbox } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { z } from 'zod'
import { hasCode } from '../../src/model/errors.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { tcpProxy } from '../faults/tcp-proxy.ts'
import { inboxContext, type PostgresInboxSubject, postgresInboxClients } from './inbox-subjects.ts'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'
import { until } from './until.ts'

const servers = postgresServers()
if (servers.length === 0) test('inbox on postgres', { skip: NO_SERVER }, () => {})

const key = { queue: 'orders', key: 'a' }
const LEASE_MS = 10_000

for (const { name, open } of postgresInboxClients().filter(({ server }) => !server.pooled)) {
  test(`${name}: a worker that is stopped in its effect blocks nobody for longer than its lease`, async (t) => {
    const subject = await open()
    const inbox = await subject.connect()
    const child = stoppable(subject, 700)
    // Also where it fails: the file would wait for what is open.
    t.after(async () => {
      child.kill()
      await inbox.close()
      await subject.dispose()
    })
    await child.says('inside')
    // The second run needs a lock that the stopped one holds, and the same key.
    const outcome = await inbox.run(key, {
      leaseMs: LEASE_MS,
      effect: async (tx) => {
        await subject.execute(tx, 'SELECT pg_advisory_xact_lock(4711)')
        await subject.effect(tx, 2)
      },
      last: () => true,
    })
    assert.equal(outcome.kind, 'committed')
    child.resume()
    await child.says('failed')
    assert.deepEqual(await subject.effects(), [2])
    assert.deepEqual(child.heard, ['inside', 'failed'])
  })
}

for (const { name, open } of postgresInboxClients()) {
  test(`${name}: a commit whose answer was lost is an unknown outcome, and the retry is safe`, async () => {
    const subject = await open()
    const inbox = await subject.connect()
    const table = `"${subject.schema.replaceAll('"', '""')}"`
    const look = nodePool(subject.url, 1)
    await look.query(`
      CREATE FUNCTION ${table}.cut() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON ${table}.effect DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION ${table}.cut()`)
    await assert.rejects(
      inbox.run(key, {
        leaseMs: LEASE_MS,
        effect: (tx) => subject.effect(tx, 1),
        last: () => true,
      }),
      { code: 'MILLRACE_OUTCOME_UNKNOWN', retryable: true },
    )
    await look.query(`DROP TRIGGER cut ON ${table}.effect`)
    const again = await inbox.run(key, {
      leaseMs: LEASE_MS,
      effect: (tx) => subject.effect(tx, 2),
      last: () => true,
    })
    assert.equal(again.kind, 'committed')
    assert.deepEqual(await subject.effects(), [2])
    await look.end()
    await inbox.close()
    await subject.dispose()
  })

  test(`${name}: what the effect does wrong in SQL is thrown as the client throws it`, async () => {
    const subject = await open()
    const inbox = await subject.connect()
    const run = (effect: (tx: unknown) => Promise<unknown>): Promise<unknown> =>
      inbox.run(key, { leaseMs: LEASE_MS, effect, last: () => true })
    await assert.rejects(
      run(async (tx) => subject.execute(tx, 'SELECT 1 / 0')),
      { code: '22012' },
    )
    const swallowed = run(async (tx) => {
      await subject.effect(tx, 1)
      await Promise.resolve(subject.execute(tx, 'SELECT 1 / 0')).catch(() => {})
    })
    // postgres.js remembers the error that was caught, pg only learns that the transaction is over.
    const named = name.includes('postgres.js') ? /division by zero/ : /not let out.*25P02/
    await assert.rejects(swallowed, { code: 'MILLRACE_BACKEND_FAULT', message: named })
    // Checked by the commit, which has an answer: nothing is unknown about it.
    const columns = 'n int UNIQUE DEFERRABLE INITIALLY DEFERRED'
    const deferred = run(async (tx) => {
      await subject.execute(tx, `CREATE TEMP TABLE twice (${columns}) ON COMMIT DROP`)
      await subject.execute(tx, 'INSERT INTO twice VALUES (1), (1)')
    })
    await assert.rejects(deferred, { code: '23505' })
    assert.deepEqual(await subject.effects(), [])
    assert.deepEqual(await inbox.seen([key]), [false])
    await inbox.close()
    await subject.dispose()
  })
}

for (const { name, url } of servers) {
  test(`${name}: a run that hears nothing more from the server ends with its lease, and has no effect`, async (t) => {
    const far = new URL(url)
    const proxy = await tcpProxy(Number(far.port))
    far.port = String(proxy.port)
    const schema = freshSchema()
    const inbox = await postgresInbox({ url: far.href, schema }).connect(inboxContext())
    t.after(async () => {
      await inbox.close()
      await proxy.close()
      await dropSchema(url, schema)
    })
    const outcomes: unknown[] = []
    const run = inbox.run(key, {
      leaseMs: 500,
      effect: () => proxy.blackHole(),
      last: () => true,
    })
    void Promise.resolve(run).then(
      (outcome) => outcomes.push(outcome),
      (error: unknown) => outcomes.push(error),
    )
    // A statement of another kind may take 30 s.
    await until('the end of the run', () => outcomes.length === 1, 15_000)
    assert.ok(hasCode(outcomes[0], 'MILLRACE_UNAVAILABLE'), String(outcomes[0]))
    await proxy.heal()
    assert.deepEqual(await inbox.seen([key]), [false])
  })

  test(`${name}: fifty handlers that wait hold no connection`, async () => {
    const schema = freshSchema()
    const pool = nodePool(url, 3)
    const work = defineQueue({
      name: 'work',
      owner: 'team-a',
      payload: z.object({ n: z.number() }),
    })
    const app = await createMillrace({
      transport: memory(),
      queues: [work],
      inbox: postgresInbox({ pool, schema }),
      logger: silentLogger,
    })
    const gate = Promise.withResolvers<void>()
    let waiting = 0
    let done = 0
    app.work(
      work,
      async (message, ctx) => {
        waiting += 1
        await gate.promise
        await ctx.tx(async (client) => {
          const { rows } = await client.query('SELECT $1::int AS n', [message.payload.n])
          assert.deepEqual(rows, [{ n: message.payload.n }])
        })
        done += 1
      },
      { concurrency: 50 },
    )
    await app.start()
    await app.sendBatch(
      work,
      Array.from({ length: 50 }, (_, n) => ({ n })),
    )
    await until('fifty handlers to wait', () => waiting === 50)
    await until('all connections to be idle', () => pool.idleCount === pool.totalCount)
    const open =
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND pid = ANY ($1)"
    const pids = await Promise.all(
      [1, 2, 3].map(async () =>
        Number((await pool.query('SELECT pg_backend_pid() AS pid')).rows[0]?.pid),
      ),
    )
    assert.equal((await pool.query(open, [pids])).rows[0]?.n, 0)
    gate.resolve()
    await until('fifty effects through three connections', () => done === 50)
    await app.close()
    await pool.end()
    await dropSchema(url, schema)
  })

  test(`${name}: keys are recorded in one order for all, so that two batches never wait in a circle`, async (t) => {
    const schema = freshSchema()
    const pool = nodePool(url, 4)
    const inbox = await postgresInbox({ pool, schema }).connect(inboxContext())
    t.after(async () => {
      await inbox.close()
      await pool.end()
      await dropSchema(url, schema)
    })
    const keys = Array.from({ length: 40 }, (_, n) => ({ queue: 'q', key: `k${100 + n}` }))
    const table = `"${schema.replaceAll('"', '""')}".inbox`
    const waiting = async (): Promise<number> => {
      const { rows } = await pool.query(
        `SELECT count(*)::int AS n FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND position($1 IN query) > 0`,
        [table],
      )
      return rows[0]?.n
    }
    const holder = await pool.connect()
    await holder.query('BEGIN')
    await holder.query(`INSERT INTO ${table} VALUES ('q', $1, now(), now() + interval '1 day')`, [
      keys[20]?.key,
    ])
    const all = inbox.record([...keys.slice(20), ...keys.slice(0, 20)].reverse())
    await until('the batch to wait for the key in its middle', async () => (await waiting()) === 1)
    let recorded = false
    const behind = inbox.record(keys.slice(21)).then(() => {
      recorded = true
    })
    await until('the keys behind it', async () => recorded || (await waiting()) === 2)
    const wasFree = recorded
    await holder.query('ROLLBACK')
    holder.release()
    await Promise.all([all, behind])
    assert.ok(wasFree, 'the batch had taken keys out of their order')
    assert.deepEqual(
      await inbox.seen(keys),
      keys.map(() => true),
    )
  })

  test(`${name}: pruning does not wait for a key that somebody holds`, async (t) => {
    const schema = freshSchema()
    const pool = nodePool(url, 3)
    const inbox = await postgresInbox({ pool, schema }).connect(inboxContext())
    t.after(async () => {
      await inbox.close()
      await pool.end()
      await dropSchema(url, schema)
    })
    const table = `"${schema.replaceAll('"', '""')}".inbox`
    await pool.query(
      `INSERT INTO ${table} SELECT 'q', n::text, now(), now() - interval '1 day'
       FROM generate_series(1, 5) AS n`,
    )
    const holder = await pool.connect()
    await holder.query('BEGIN')
    await holder.query(`SELECT 1 FROM ${table} WHERE key = '3' FOR UPDATE`)
    const late = AbortSignal.timeout(20_000)
    const waited = new Promise<string>((resolve) =>
      late.addEventListener('abort', () => resolve('waited')),
    )
    const pruned = await Promise.race([inbox.prune(100), waited])
    await holder.query('ROLLBACK')
    holder.release()
    assert.equal(pruned, 4)
    assert.equal(await inbox.prune(100), 1)
  })

  for (const limited of ['between statements', 'in statements'] as const) {
    for (const [own, ...expected] of [
      ['4s', '4s', '3s', '4s'],
      ['0', '1min', '3s', '0'],
    ] as const) {
      test(`${name}: the time ${limited} ends with the lease, or earlier by the limit of the user (${own})`, async (t) => {
        const schema = freshSchema()
        const setting =
          limited === 'in statements' ? await limitInStatements(url) : BETWEEN_STATEMENTS
        const pool = nodePool(`${url}?options=-c%20${setting}%3D${own}`, 1)
        const inbox = await postgresInbox({ pool, schema }).connect(inboxContext())
        t.after(async () => {
          await inbox.close()
          await pool.end()
          await dropSchema(url, schema)
        })
        const limits: string[] = []
        const look = async (client: Pick<typeof pool, 'query'>): Promise<void> => {
          limits.push(String((await client.query(`SHOW ${setting}`)).rows[0]?.[setting]))
        }
        for (const leaseMs of [60_000, 3_000]) {
          const runKey = { queue: 'orders', key: String(leaseMs) }
          await inbox.run(runKey, { leaseMs, effect: look, last: () => true })
        }
        await look(pool)
        assert.deepEqual(limits, expected)
      })
    }
  }
}

const BETWEEN_STATEMENTS = 'idle_in_transaction_session_timeout'

/** From Postgres 17 on the whole transaction has a limit of its own. */
async function limitInStatements(url: string): Promise<string> {
  const pool = nodePool(url, 1)
  const { rows } = await pool.query("SELECT current_setting('server_version_num')::int4 AS version")
  await pool.end()
  return Number(rows[0]?.version) >= 170_000 ? 'transaction_timeout' : 'statement_timeout'
}

interface Stoppable {
  readonly heard: readonly string[]
  says(line: string): Promise<void>
  resume(): void
  /** Also while it is stopped. */
  readonly kill: () => void
}

function stoppable({ url, schema }: PostgresInboxSubject, leaseMs: number): Stoppable {
  const script = new URL('./inbox-stopped.ts', import.meta.url).pathname
  const child = spawn(
    process.execPath,
    ['--conditions=millrace-source', script, url, schema, String(leaseMs)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const heard: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => heard.push(line))
  const exited = once(child, 'exit')
  return {
    heard,
    says: async (line) => {
      await until(`the child to say ${line}`, () => heard.includes(line))
      if (line === 'failed') await exited
    },
    resume: () => void child.kill('SIGCONT'),
    kill: () => void child.kill('SIGKILL'),
  }
}
