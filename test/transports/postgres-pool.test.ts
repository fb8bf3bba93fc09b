import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue } from 'millrace'
import { postgres } from 'millrace/postgres'
import pg from 'pg'
import postgresJs from 'postgres'
import { z } from 'zod'
import { systemClock } from '../../src/model/clock.ts'
import { hasCode } from '../../src/model/errors.ts'
import { bytesArray, numberArray, textArray } from '../../src/sql/pg-array.ts'
import { pgExecutor } from '../../src/sql/pg-executor.ts'
import { pgFault } from '../../src/sql/pg-fault.ts'
import {
  migratePg,
  type PgSchema,
  pgDatabaseId,
  printMigrations,
} from '../../src/sql/pg-migrate.ts'
import { addressProblem, type PgAddress, pgPool } from '../../src/sql/pg-open.ts'
import type { PgBeginOptions, PgPool } from '../../src/sql/pg-pool.ts'
import {
  dropSchema,
  freshSchema,
  jsPool,
  NO_SERVER,
  nodePool,
  pgBouncer,
  postgresServers,
} from './postgres-servers.ts'
import { until } from './until.ts'

const clock = systemClock()
const at = { clock, random: Math.random }
const servers = [...postgresServers(), ...[pgBouncer()].filter((one) => one !== undefined)]
if (servers.length === 0) test('postgres pools', { skip: NO_SERVER }, () => {})

interface Subject {
  readonly address: PgAddress
  end(): Promise<unknown>
}

const clients: Readonly<Record<string, (url: string) => Subject>> = {
  'an address': (url) => ({ address: { url }, end: async () => {} }),
  'a pool of pg': (url) => {
    const pool = nodePool(url)
    return { address: { pool }, end: () => pool.end() }
  },
  'a sql of postgres.js': (url) => {
    const sql = jsPool(url)
    return { address: { pool: sql }, end: () => sql.end() }
  },
  'a sql of postgres.js that renames columns': (url) => {
    const sql = jsPool(url, 3, { transform: postgresJs.camel })
    return { address: { pool: sql }, end: () => sql.end() }
  },
}

/** As `migratePg` takes it: processes of all versions must agree on it. */
const MIGRATION_LOCK = 'SELECT pg_advisory_xact_lock(7883951835720016741)'

const orders = defineQueue({ name: 'orders', owner: 'team-orders', payload: z.string() })

const IDLE_LIMIT = `SELECT current_setting('idle_in_transaction_session_timeout') AS idle`

const ECHO = `
SELECT a.text_value, a.bytes_value, a.int_value::float8 AS int_value, $4::text AS json_text, $5::boolean AS flag,
  $6::text AS nothing
FROM unnest($1::text[], $2::bytea[], $3::bigint[]) AS a (text_value, bytes_value, int_value)`

function component(count: number, compatibleFrom?: number): PgSchema {
  const tables = Array.from({ length: count }, (_, at) => ({
    statements: [`CREATE TABLE {schema}.step_${at} (n integer)`],
    ...(compatibleFrom === undefined ? {} : { compatibleFrom }),
  }))
  return { component: 'queue', migrations: tables }
}

for (const { name, url, pooled } of servers) {
  for (const [client, open] of Object.entries(clients)) {
    const check = (title: string, run: (pool: PgPool) => Promise<void>): void => {
      test(`${name}, ${client}: ${title}`, async () => {
        const { address, end } = open(url)
        const pool = await pgPool(address, { clock })
        try {
          await run(pool)
        } finally {
          await pool.close()
          await end()
        }
      })
    }

    check('arrays, bytes, numbers and JSON texts travel as they are', async (pool) => {
      const texts = ['a"b', 'c\\d', '', 'NULL', '{x,y}', 'ä\n€😀', ' ']
      const bytes = texts.map((text) => Buffer.from(text))
      const params = [
        textArray(texts),
        bytesArray(bytes),
        numberArray(texts.map((_, at) => 2 ** 40 + at)),
        '{"a":[1,"x"]}',
        true,
        null,
      ]
      const rows = await pool.query(ECHO, params)
      assert.deepEqual(
        rows.map((row) => row.text_value),
        texts,
      )
      rows.forEach((row, at) => {
        assert.deepEqual(Buffer.from(row.bytes_value as Uint8Array), bytes[at])
        assert.equal(row.int_value, 2 ** 40 + at)
        assert.equal(row.json_text, '{"a":[1,"x"]}')
        assert.equal(row.flag, true)
        assert.equal(row.nothing, null)
      })
    })

    check('a transaction commits or leaves nothing, and hands out its client', async (pool) => {
      const schema = freshSchema()
      await migratePg(pool, schema, component(1), 'auto', at)
      const table = `"${schema.replaceAll('"', '""')}".step_0`
      const count = async (): Promise<number> =>
        Number((await pool.query(`SELECT count(*)::int4 AS n FROM ${table}`, []))[0]?.n)
      const failed = pool.begin(async (executor) => {
        await executor.execute(`INSERT INTO ${table} VALUES (1)`, [])
        throw new Error('no')
      })
      await assert.rejects(failed, /no/)
      assert.equal(await count(), 0)
      const answer = await pool.begin(async (_, tx) => {
        const same = pgExecutor(tx)
        assert.ok(same)
        await same.execute(`INSERT INTO ${table} VALUES (1)`, [])
        return 7
      })
      assert.equal(answer, 7)
      assert.equal(await count(), 1)
      await dropSchema(url, schema)
    })

    check('a transaction may not stand idle, unless it sets a limit of its own', async (pool) => {
      const limit = (options: PgBeginOptions): Promise<unknown> =>
        pool.begin(async ({ execute }) => {
          const [row] = await execute(IDLE_LIMIT, [])
          return row?.idle
        }, options)
      assert.deepEqual([await limit({}), await limit({ limitIdle: false })], ['10s', '0'])
      const [after] = await pool.query(IDLE_LIMIT, [])
      assert.equal(after?.idle, '0')
    })

    check('a statement that was refused is no fault of the connection', async (pool) => {
      const error = await pool.query('SELECT 1/0', []).catch((cause: unknown) => cause)
      assert.deepEqual(
        { ...pgFault(error), cause: undefined },
        { code: 'invalid', retryable: false, outcome: 'notApplied', cause: undefined },
      )
      const [row] = await pool.query('SELECT 1 AS one', [])
      assert.equal(row?.one, 1)
    })

    check('migrations go forward, are checked, and refuse what is newer', async (pool) => {
      const schema = freshSchema()
      const outdated = migratePg(pool, schema, component(1), 'check', at)
      await assert.rejects(outdated, /version 0, this millrace needs 1.*millrace migrate/)
      await migratePg(pool, schema, component(1), 'auto', at)
      const id = await pgDatabaseId({ execute: pool.query }, schema)
      assert.match(String(id), /^postgres:[0-9a-f-]{36}@\d+$/)
      await migratePg(pool, schema, component(3), 'auto', at)
      await migratePg(pool, schema, component(3), 'check', at)
      assert.equal(await pgDatabaseId({ execute: pool.query }, schema), id)
      const newer = migratePg(pool, schema, component(2), 'auto', at)
      await assert.rejects(newer, (error) => hasCode(error, 'MILLRACE_SCHEMA_TOO_NEW'))
      await migratePg(pool, schema, component(4, 2), 'auto', at)
      await migratePg(pool, schema, component(2), 'check', at)
      await dropSchema(url, schema)
    })
  }

  test(`${name}: twenty instances migrate at once, and one set of tables is there`, async () => {
    const pools = Array.from({ length: 20 }, () => nodePool(url, 1))
    const schema = freshSchema()
    const adapted = await Promise.all(pools.map((pool) => pgPool({ pool }, { clock })))
    await Promise.all(adapted.map((pool) => migratePg(pool, schema, component(3), 'auto', at)))
    const [first] = adapted
    const ids = await Promise.all(
      adapted.map((pool) => pgDatabaseId({ execute: pool.query }, schema)),
    )
    assert.equal(new Set(ids).size, 1)
    // Other test files migrate on this server too: theirs come and go, one of ours would stay.
    await until('no migration lock left', async () => {
      const found = await first?.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'", [])
      return found?.length === 0
    })
    await Promise.all(pools.map((pool) => pool.end()))
    await dropSchema(url, schema)
  })

  if (pooled) {
    test(`${name}: a sql of postgres.js that prepares statements is refused, its commits get lost`, async () => {
      const sql = postgresJs(url, { max: 3, onnotice: () => {} })
      const schema = freshSchema()
      const unsafe = {
        code: 'MILLRACE_INVALID_OPTIONS',
        message: /^postgres: pool: .*postgres\.js.*prepare: false/,
      }
      try {
        const transport = postgres({ pool: sql, schema, listen: false })
        await assert.rejects(createMillrace({ transport, queues: [orders] }), unsafe)
        const refused = await pgPool({ pool: sql }, { clock })
        await assert.rejects(
          refused.begin(async () => {}),
          unsafe,
        )
        await assert.rejects(refused.query('SELECT 1', []), unsafe)
      } finally {
        await sql.end({ timeout: 1 })
      }
    })
    continue
  }

  test(`${name}: printed migrations make the same schema`, async () => {
    const pool = nodePool(url)
    const schema = freshSchema()
    await pool.query(printMigrations(schema, component(2)))
    const adapted = await pgPool({ pool }, { clock })
    await migratePg(adapted, schema, component(2), 'check', at)
    // As its first line says, of a database that has version 2.
    const all = printMigrations(schema, component(3))
    assert.match(all, /^-- Where .* leave out the steps up to that one\.\n/)
    await pool.query(all.replace(/-- queue, version 1.*(?=-- queue, version 3)/s, ''))
    await migratePg(adapted, schema, component(3), 'check', at)
    await pool.end()
    await dropSchema(url, schema)
  })

  for (const compatibleFrom of [2, undefined]) {
    const becomes =
      compatibleFrom === undefined ? 'is refused where it cannot go on' : 'takes nothing back'
    test(`${name}: an older instance that waited for the migration of a newer one ${becomes}`, async () => {
      const [holder, look] = [nodePool(url, 1), nodePool(url, 2)]
      const schema = freshSchema()
      const newer = component(4, compatibleFrom)
      const client = await holder.connect()
      await client.query('BEGIN')
      await client.query(MIGRATION_LOCK)
      const adapted = await pgPool({ pool: look }, { clock })
      const older = migratePg(adapted, schema, component(2), 'auto', at)
      older.catch(() => {})
      await until('the older one to wait', async () => {
        const waiting = await adapted.query(
          "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
          [],
        )
        return waiting.length > 0
      })
      // Ends the transaction.
      await client.query(printMigrations(schema, newer))
      client.release()
      if (compatibleFrom === undefined)
        await assert.rejects(older, { code: 'MILLRACE_SCHEMA_TOO_NEW' })
      else await older
      await migratePg(adapted, schema, newer, 'check', at)
      await Promise.all([holder.end(), look.end()])
      await dropSchema(url, schema)
    })
  }

  test(`${name}: who may make no schema uses the one that somebody made`, async () => {
    const admin = nodePool(url, 1)
    const role = `millrace_test_${process.pid}`
    const schema = freshSchema()
    await admin.query(`CREATE ROLE ${role}`)
    await admin.query(`CREATE SCHEMA ${pg.escapeIdentifier(schema)} AUTHORIZATION ${role}`)
    const restricted = new URL(url)
    restricted.searchParams.set('options', `-c role=${role}`)
    const pool = nodePool(restricted.href, 1)
    const adapted = await pgPool({ pool }, { clock })
    await migratePg(adapted, schema, component(2), 'auto', at)
    await migratePg(adapted, schema, component(2), 'check', at)
    await pool.end()
    await dropSchema(url, schema)
    await admin.query(`DROP ROLE ${role}`)
    await admin.end()
  })

  test(`${name}: connections that the server ends are replaced, and no event ends the process`, async () => {
    const pool = await pgPool({ url }, { clock })
    const pids = await Promise.all(
      Array.from({ length: 3 }, () =>
        pool.query('SELECT pg_backend_pid() AS pid, pg_sleep(0.05)::text', []),
      ),
    )
    const other = nodePool(url)
    for (const [row] of pids) await other.query('SELECT pg_terminate_backend($1::int4)', [row?.pid])
    const answers = await Promise.allSettled(pids.map(() => pool.query('SELECT 1', [])))
    for (const answer of answers) {
      if (answer.status === 'rejected') assert.equal(pgFault(answer.reason).code, 'unavailable')
    }
    for (const _ of pids) await pool.query('SELECT 1', [])
    await other.end()
    await pool.close()
  })

  test(`${name}: a call has an end, also when the server says nothing`, async () => {
    const pool = await pgPool({ url }, { clock, timeoutMs: 200 })
    const error = await pool.query('SELECT pg_sleep(60)', []).catch((cause: unknown) => cause)
    assert.equal(hasCode(error, 'MILLRACE_UNAVAILABLE'), true)
    assert.equal(pgFault(error).outcome, 'unknown')
    await pool.query('SELECT 1', [])
    const waiting = assert.rejects(
      pool.query('SELECT pg_sleep(60)', [], { timeoutMs: 60_000 }),
      (cause) => hasCode(cause, 'MILLRACE_CLOSED'),
    )
    await pool.close()
    await waiting
    await assert.rejects(pool.query('SELECT 1', []), (cause) => hasCode(cause, 'MILLRACE_CLOSED'))
  })

  test(`${name}: a server that is not there is unavailable, and nothing was applied`, async () => {
    const pool = await pgPool({ url: 'postgres://postgres@127.0.0.1:1/postgres' }, { clock })
    const error = await pool.query('SELECT 1', []).catch((cause: unknown) => cause)
    assert.equal(pgFault(error).code, 'unavailable')
    assert.equal(pgFault(error).outcome, 'notApplied')
    await pool.close()
  })
}

test('addresses are checked before anybody connects', () => {
  assert.match(String(addressProblem({})), /either url or pool/)
  assert.match(String(addressProblem({ url: 'localhost' })), /postgres:\/\//)
  assert.match(String(addressProblem({ pool: {} })), /node-postgres.*postgres\.js/)
})

test('what is no transaction of a Postgres client is not taken for one', () => {
  const strangers = [
    undefined,
    null,
    1,
    'tx',
    {},
    () => {},
    { execute: 1 },
    { query() {}, execute() {} },
  ]
  for (const stranger of strangers) assert.equal(pgExecutor(stranger), undefined)
})
