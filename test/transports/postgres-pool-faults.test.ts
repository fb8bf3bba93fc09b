import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import pg from 'pg'
import { systemClock } from '../../src/model/clock.ts'
import { hasCode } from '../../src/model/errors.ts'
import { pgFault } from '../../src/sql/pg-fault.ts'
import { pgPool } from '../../src/sql/pg-open.ts'
import { tcpProxy } from '../faults/tcp-proxy.ts'
import { jsPool, NO_SERVER, nodePool, postgresServers } from './postgres-servers.ts'
import { until } from './until.ts'

const [server] = postgresServers()
if (server === undefined) test('a pool of pg in trouble', { skip: NO_SERVER }, () => {})

const clock = systemClock()
const LOCK = 4_712
/** Other tests on this server have sessions of their own. */
const OURS = `pool-faults-${process.pid}`

/** A pool of the user's with one connection, behind a proxy, and ours on it. */
async function scene(t: TestContext, url: string, options: pg.PoolConfig = {}) {
  const far = new URL(url)
  const proxy = await tcpProxy(Number(far.port))
  far.port = String(proxy.port)
  const users = new pg.Pool({
    connectionString: far.href,
    max: 1,
    application_name: OURS,
    ...options,
  })
  users.on('error', () => {})
  const near = nodePool(url, 2)
  const pool = await pgPool({ pool: users }, { clock, timeoutMs: 300 })
  t.after(async () => {
    await pool.close()
    await proxy.close()
    await Promise.all([users.end(), near.end()])
  })
  /** Ends the session that has this process id, as an administrator does. */
  const terminate = async (pid: unknown): Promise<void> => {
    await near.query('SELECT pg_terminate_backend($1::int4)', [pid])
  }
  /** Waits until one of our sessions does this, and says which. */
  const doing = async (what: string): Promise<unknown> => {
    const sql =
      "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND query LIKE $2 AND state = 'active'"
    let pid: unknown
    await until(`a session that runs ${what}`, async () => {
      pid = (await near.query(sql, [OURS, `${what}%`])).rows[0]?.pid
      return pid !== undefined
    })
    return pid
  }
  return { users, near, pool, proxy, terminate, doing }
}

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => assert.fail('it was answered'),
    (error: unknown) => error,
  )

function isAway(error: unknown, outcome: 'notApplied' | 'unknown'): void {
  const fault = pgFault(error)
  assert.deepEqual([fault.code, fault.outcome], ['unavailable', outcome], String(error))
}

if (server !== undefined) {
  const { url } = server

  test('a connection that comes after the call has given up goes back to the pool', async (t) => {
    const { users, pool } = await scene(t, url)
    const others = await users.connect()
    const failure = await failureOf(pool.query('SELECT 1', []))
    isAway(failure, 'notApplied')
    assert.match(String(failure), /no connection .* came free in the pool, within 300 ms/)
    others.release()
    await until('an idle connection', () => users.idleCount === 1)
    assert.equal(users.totalCount, 1)
    await pool.query('SELECT 1', [])
  })

  test('a call that was called off while it waited for a connection gives it back and asks nothing', async (t) => {
    const { users, pool } = await scene(t, url)
    const others = await users.connect()
    const calledOff = new AbortController()
    const call = { timeoutMs: 30_000, signal: calledOff.signal }
    const failed = failureOf(
      pool.query(`SELECT set_config('millrace.asked', 'yes', false)`, [], call),
    )
    await until('a call that waits', () => users.waitingCount === 1)
    calledOff.abort(new Error('called off'))
    others.release()
    assert.match(String(await failed), /called off/)
    assert.equal(users.idleCount, 1)
    const [row] = await pool.query(`SELECT current_setting('millrace.asked', true) AS asked`, [])
    assert.equal(row?.asked, null)
  })

  test('a connection that does not answer the first question of all is dropped, and nothing was applied', async (t) => {
    const { users, pool, proxy } = await scene(t, url)
    for (const how of ['silent', 'cut'] as const) {
      ;(await users.connect()).release()
      proxy.block('down')
      const failed = failureOf(pool.query('SELECT 1', []))
      await turn()
      if (how === 'cut') proxy.cut()
      isAway(await failed, 'notApplied')
      assert.equal(users.totalCount, 0, how)
      await proxy.heal()
    }
    await pool.query('SELECT 1', [])
  })

  test('a connection to which the server has said goodbye is not given to the next call', async (t) => {
    const { users, pool, terminate, doing } = await scene(t, url)
    const long = { timeoutMs: 30_000 }
    const failed = failureOf(pool.query('SELECT pg_sleep(60)', [], long))
    await terminate(await doing('SELECT pg_sleep'))
    isAway(await failed, 'unknown')
    assert.equal(users.totalCount, 0)
    await pool.query('SELECT 1', [])
  })

  test('a connection that the server ended while it committed is dropped, and the outcome is unknown', async (t) => {
    const { users, near, pool, terminate, doing } = await scene(t, url)
    const sleeper = `millrace_test_sleep_${process.pid}`
    t.after(async () => {
      const last = nodePool(url, 1)
      await last.query(`DROP TABLE ${sleeper}; DROP FUNCTION ${sleeper}()`)
      await last.end()
    })
    await near.query(`CREATE TABLE ${sleeper} (n int);
      CREATE FUNCTION ${sleeper}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON ${sleeper} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION ${sleeper}()`)
    const committing = pool.begin(
      ({ execute }) => execute(`INSERT INTO ${sleeper} VALUES (1)`, []),
      { timeoutMs: 30_000 },
    )
    const failed = failureOf(committing)
    await terminate(await doing('COMMIT'))
    isAway(await failed, 'unknown')
    assert.equal(users.totalCount, 0)
  })

  test('a connection that the server ends between two statements fails the transaction, and no event ends the process', async (t) => {
    const { users, pool, terminate } = await scene(t, url)
    const failed = pool.begin(async ({ execute }) => {
      const [row] = await execute('SELECT pg_backend_pid() AS pid', [])
      await terminate(row?.pid)
      await until('the end of the session', () =>
        execute('SELECT 1', []).then(
          () => false,
          () => true,
        ),
      )
    })
    isAway(await failureOf(failed), 'unknown')
    await until('the end of the connection', () => users.totalCount === 0)
    await pool.query('SELECT 1', [])
  })

  test('what a process that stands still has locked is free soon, and it hears of it', async (t) => {
    const { pool } = await scene(t, url)
    const { pool: other } = await scene(t, url)
    const wakes = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const standing = pool.begin(async ({ execute }) => {
      await execute('SELECT pg_advisory_xact_lock($1)', [LOCK])
      begun.resolve()
      await wakes.promise
      await execute('SELECT 1', [])
    })
    const failed = failureOf(standing)
    await begun.promise
    const isFree = async (): Promise<boolean> =>
      (await other.query('SELECT pg_try_advisory_xact_lock($1) AS got', [LOCK]))[0]?.got === true
    assert.equal(await isFree(), false)
    await until('the lock is free', isFree)
    wakes.resolve()
    isAway(await failed, 'unknown')
  })

  test("a shorter limit of the user's own stays", async (t) => {
    const { pool } = await scene(t, `${url}?options=-c%20idle_in_transaction_session_timeout%3D700`)
    const [row] = await pool.begin(({ execute }) =>
      execute("SELECT current_setting('idle_in_transaction_session_timeout') AS idle", []),
    )
    assert.equal(row?.idle, '700ms')
  })

  test('a transaction whose rollback got no answer does not go on in the next call', async (t) => {
    // The client gives up before we do, and would go on using the connection.
    const { users, pool, proxy } = await scene(t, url, { query_timeout: 100 })
    const failed = pool.begin(async ({ execute }) => {
      await execute('SELECT 1', [])
      proxy.block('down')
      throw new Error('mine')
    })
    assert.match(String(await failureOf(failed)), /mine/)
    assert.equal(users.totalCount, 0)
    await proxy.heal()
    await pool.query('SELECT 1', [])
  })

  test("an answer that the client's own query_timeout did not wait for is an unknown outcome, and its connection is dropped", async (t) => {
    const { users, pool, proxy } = await scene(t, url, { query_timeout: 100 })
    await pool.query('SELECT 1', [])
    proxy.block('down')
    isAway(await failureOf(pool.query('SELECT 2', [])), 'unknown')
    assert.equal(users.totalCount, 0)
    await proxy.heal()
  })

  test('a close ends the transaction of a handler that waits for something else, and its locks with it', async (t) => {
    const { users, near, pool } = await scene(t, url)
    const [locked, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const failed = pool.begin(async ({ execute }) => {
      await execute('SELECT pg_advisory_xact_lock($1::int8)', [LOCK])
      locked.resolve()
      await goOn.promise
    })
    const error = failureOf(failed)
    await locked.promise
    await pool.close()
    assert.equal(users.totalCount, 0)
    await until('the lock to be free', async () => {
      const { rows } = await near.query('SELECT pg_try_advisory_xact_lock($1::int8) AS free', [
        LOCK,
      ])
      return rows[0].free === true
    })
    goOn.resolve()
    assert.ok(await error)
  })

  test('a close of our own pool does not wait for a connection that is never made', async (t) => {
    const far = new URL(url)
    const proxy = await tcpProxy(Number(far.port))
    t.after(() => proxy.close())
    far.port = String(proxy.port)
    const fast = { ...clock, after: (ms: number, run: () => void) => clock.after(ms / 10, run) }
    const pool = await pgPool({ url: far.href }, { clock: fast })
    proxy.blackHole()
    const failed = failureOf(pool.query('SELECT 1', []))
    await until('a connection in the hole', () => proxy.open() === 1)
    let isClosed = false
    void pool.close().then(() => {
      isClosed = true
    })
    assert.ok(hasCode(await failed, 'MILLRACE_CLOSED'))
    // The client itself gives up after 10 s.
    await until('the end of the close', () => isClosed, 5_000)
  })

  for (const client of ['pg', 'postgres.js'] as const) {
    test(`${client}: a transaction sees what others commit and may write, whatever the database has as its default`, async (t) => {
      const strict = new URL(url)
      strict.searchParams.set(
        'options',
        '-c default_transaction_isolation=serializable -c default_transaction_read_only=on',
      )
      const users = client === 'pg' ? nodePool(strict.href, 1) : jsPool(strict.href, 1)
      t.after(() => users.end())
      const pool = await pgPool({ pool: users }, { clock })
      const [row] = await pool.begin(({ execute }) =>
        execute(
          `SELECT current_setting('transaction_isolation') AS isolation,
             current_setting('transaction_read_only') AS read_only,
             current_setting('default_transaction_isolation') AS usual`,
          [],
        ),
      )
      assert.deepEqual(
        { ...row },
        { isolation: 'read committed', read_only: 'off', usual: 'serializable' },
      )
      await pool.close()
    })

    test(`${client}: a transaction in which a statement failed is no success, though the error was swallowed`, async (t) => {
      const users = client === 'pg' ? nodePool(url, 1) : jsPool(url, 1)
      t.after(() => users.end())
      const pool = await pgPool({ pool: users }, { clock })
      const failed = pool.begin(async ({ execute }) => {
        await execute('SELECT 1 / 0', []).catch(() => undefined)
        return 'done'
      })
      const error = await failureOf(failed)
      const isOurs = hasCode(error, 'MILLRACE_BACKEND_FAULT')
      assert.ok(isOurs || pgFault(error).code === 'invalid', String(error))
      await pool.close()
    })
  }
}

if (server !== undefined)
  test('of a pool of ours that closes nothing is left where a network swallows all, neither what connects nor what was told goodbye', async (t) => {
    const far = new URL(server.url)
    const proxy = await tcpProxy(Number(far.port))
    t.after(() => proxy.close())
    far.port = String(proxy.port)
    const pool = await pgPool({ url: far.href }, { clock, timeoutMs: 30_000 })
    await Promise.all([1, 2, 3].map(() => pool.query('SELECT pg_sleep(0.05)', [])))
    const listening = await pool.listen?.('news', { hear() {}, lost() {} })
    const idle = proxy.open()
    assert.ok(idle >= 4)
    proxy.blackHole()
    const calls = Array.from({ length: 6 }, () => pool.query('SELECT 1', []))
    const answers = Promise.allSettled(calls)
    await until('what connects', () => proxy.open() > idle)
    listening?.close()
    await pool.close()
    await answers
    await until('all connections to be gone', () => proxy.open() === 0, 4_000)
  })
