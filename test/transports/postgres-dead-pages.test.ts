import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgresStore } from 'millrace/store'
import type pg from 'pg'
import { postgresInboxStatements } from '../../src/inbox/postgres-statements.ts'
import type { DeadLetter } from '../../src/model/dead-letter.ts'
import { postgresOutboxStatements } from '../../src/outbox/postgres-statements.ts'
import { quoteIdentifier } from '../../src/sql/pg-name.ts'
import { statementsIn as storeStatementsIn } from '../../src/stores/postgres/database.ts'
import * as storeStatements from '../../src/stores/postgres/statements.ts'
import { MOMENT_MAX_MS } from '../../src/transport/refusal.ts'
import { PAGE_BYTES_MAX } from '../../src/transport/shelf-page.ts'
import type { Shelf } from '../../src/transport/transport.ts'
import * as adminStatements from '../../src/transports/postgres/admin-statements.ts'
import * as keyStatements from '../../src/transports/postgres/key-statements.ts'
import * as messageStatements from '../../src/transports/postgres/statements.ts'
import { statementsIn } from '../../src/transports/postgres/store.ts'
import { postgresVersionStatements } from '../../src/versions/postgres-statements.ts'
import { connectStore } from '../stores/store-harness.ts'
import { open } from './postgres-bench.ts'
import { dropSchema, freshSchema, nodePool, postgresServers } from './postgres-servers.ts'

const LETTERS = 20_000
const PAGE = 100
const PER_MS = 150
const letter: Omit<DeadLetter, 'deadAt'> = {
  queue: 'q',
  envelope: { id: '1', body: new Uint8Array(), headers: {}, priority: 0 },
  owner: 'team',
  errorClass: 'permanent',
  reason: 'no',
  history: { counted: 1, crashes: 0, redrives: 0, throttledSince: undefined, records: [] },
  sentAt: 1_700_000_000_000,
}

interface Shown {
  readonly client: pg.PoolClient
  readonly table: string
  readonly statement: string
  readonly params: readonly unknown[]
}

/** How many rows one page reads, and how Postgres finds them, whether it plans with the values or without. */
async function planned({ client, table, statement, params }: Shown): Promise<void> {
  for (const mode of ['force_custom_plan', 'force_generic_plan']) {
    await client.query('BEGIN')
    await client.query(`SET LOCAL plan_cache_mode = ${mode}`)
    await client.query(`PREPARE page AS ${statement}`)
    const values = params.map((value) => client.escapeLiteral(String(value))).join(', ')
    const before = await rowsRead(client, table)
    const { rows } = await client.query(`EXECUTE page (${values})`)
    const read = (await rowsRead(client, table)) - before
    const { rows: lines } = await client.query(`EXPLAIN EXECUTE page (${values})`)
    const plan = lines.map((line) => line['QUERY PLAN']).join('\n')
    await client.query('DEALLOCATE page')
    await client.query('ROLLBACK')
    assert.equal(rows.length, PAGE, mode)
    assert.ok(read <= 2 * PAGE, `a page of ${PAGE} read ${read} rows (${mode})\n${plan}`)
    assert.match(plan, /Index Scan Backward/, `${mode}: ${plan}`)
    assert.doesNotMatch(plan, /Sort|Seq Scan/, `${mode}: ${plan}`)
  }
}

async function rowsRead(client: pg.PoolClient, table: string): Promise<number> {
  const { rows } = await client.query(
    `SELECT (idx_tup_fetch + seq_tup_read)::int4 AS n FROM pg_stat_xact_user_tables WHERE relid = '${table}'::regclass`,
  )
  return rows[0].n
}

/** Every page to the end: each letter once, none left out. */
async function walk(shelf: Pick<Shelf, 'list'>, queue: string): Promise<void> {
  const seen: string[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await shelf.list(queue, { limit: 1_000, ...(cursor && { cursor }) })
    seen.push(...page.items.map(({ envelope }) => envelope.id))
    cursor = page.cursor
  }
  assert.equal(seen.length, LETTERS)
  assert.equal(new Set(seen).size, LETTERS)
}

/** Each letter by the place of it in `n`: `PER_MS` die in one millisecond, so that a page ends between two of them. */
const deadAt = `to_timestamp(1700000000) + (n / ${PER_MS}) * interval '1 millisecond'`
const HALF_WAY = { deadAt: 1_700_000_000_000 + Math.floor(LETTERS / 2 / PER_MS), id: '5' }

async function pagesOf(
  pool: pg.Pool,
  table: string,
  queue: unknown,
  statements: readonly [all: string, ofClass: string],
  bare: readonly [all: string, ofClass: string],
): Promise<void> {
  const client = await pool.connect()
  try {
    const place = [queue, MOMENT_MAX_MS, HALF_WAY.deadAt, HALF_WAY.id, PAGE]
    await client.query(`ANALYZE ${table}`)
    const bounded = [...place, PAGE_BYTES_MAX]
    await planned({ client, table, statement: statements[0], params: bounded })
    await planned({ client, table, statement: statements[1], params: [...bounded, 'permanent'] })
    await planned({ client, table, statement: bare[0], params: place })
    await planned({ client, table, statement: bare[1], params: [...place, 'permanent'] })
    const newest = [queue, MOMENT_MAX_MS, MOMENT_MAX_MS, '', 4]
    await client.query(`UPDATE ${table} SET body = 'abc'`)
    for (const bytes of [2, 7]) {
      const bodies = bytes < 3 ? 1 : Math.floor(bytes / 3)
      const [all, ofClass] = statements
      assert.equal(await bodiesOf(client, all, [...newest, bytes]), bodies)
      assert.equal(await bodiesOf(client, ofClass, [...newest, bytes, 'permanent']), bodies)
    }
  } finally {
    client.release()
  }
}

/** The server sends no more than were asked for: a page of 500 letters would be read by the process as a whole. */
async function bodiesOf(
  client: pg.PoolClient,
  statement: string,
  params: readonly unknown[],
): Promise<number> {
  const { rows } = await client.query(statement, [...params])
  assert.equal(rows.length, 4)
  return rows.filter(({ body }) => body !== null).length
}

const families: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  transport: { ...messageStatements, ...adminStatements, ...keyStatements },
  store: storeStatements,
  inbox: postgresInboxStatements,
  outbox: postgresOutboxStatements,
  versions: postgresVersionStatements,
}
/** It is ordered by the count that it selects. */
const MEANT = ['store COUNT_SLOTS n']

/** Names of values computed before, by which a statement is ordered: Postgres takes the value, not the column of that name. */
function orderedByValue(sql: string): readonly string[] {
  const orders = [...sql.matchAll(/(?:ORDER|GROUP) BY ([^()\n]*)/g)]
  const found = orders.flatMap(({ 1: list = '', index }) =>
    list
      .split(',')
      .map((name) => name.trim().split(' ')[0] ?? '')
      .filter((name) => /^\w+$/.test(name) && computes(sql.slice(0, index), name)),
  )
  return [...new Set(found)]
}

function computes(sql: string, name: string): boolean {
  return new RegExp(`(?:\\)|::\\w+) AS ${name}\\b`).test(sql)
}

test('no statement on Postgres is ordered by a value that is named as its column', () => {
  const found = Object.entries(families).flatMap(([family, statements]) =>
    Object.entries(statements).flatMap(([statement, sql]) =>
      orderedByValue(sql).map((name) => `${family} ${statement} ${name}`),
    ),
  )
  assert.deepEqual(found, MEANT)
})

for (const { name, url } of postgresServers()) {
  test(`${name}: a page of dead letters reads that page`, async (t) => {
    const bench = await open(url)
    const table = `${quoteIdentifier(bench.schema)}.dead_letter`
    const pool = nodePool(url, 2)
    t.after(() => pool.end())
    await pool.query(
      `INSERT INTO ${table} (queue_id, id, dead_at, error_class, reason, owner, sent_at, priority, counted, crashes,
         redrives, body)
       SELECT 1, n::text, ${deadAt}, 'permanent', 'no', 'team', now(), 0, 1, 0, 0, ''
       FROM generate_series(1, ${LETTERS}) AS n`,
    )
    const sql = statementsIn(bench.schema)
    const bare = [sql.LIST_DEAD_BARE, sql.LIST_DEAD_BARE_OF_CLASS] as const
    await pagesOf(pool, table, 1, [sql.LIST_DEAD, sql.LIST_DEAD_OF_CLASS], bare)
    const { shelf } = bench.transport
    assert.ok(shelf)
    await walk(shelf, 'q')
    await bench.dispose()
  })

  test(`${name}: a page of dead letters in a store reads that page`, async (t) => {
    const schema = freshSchema()
    const store = await connectStore(postgresStore({ url, schema }))
    const table = `${quoteIdentifier(schema)}.store_dead_letter`
    const pool = nodePool(url, 2)
    t.after(async () => {
      await pool.end()
      await store.close()
      await dropSchema(url, schema)
    })
    await store.shelf.put([letter])
    await pool.query(
      `INSERT INTO ${table} (queue, id, dead_at, error_class, letter, message, body)
       SELECT queue, n::text, ${deadAt}, error_class, letter, message, body
       FROM ${table}, generate_series(2, ${LETTERS}) AS n`,
    )
    const sql = storeStatementsIn(schema)
    const bare = [sql.LIST_LETTERS_BARE, sql.LIST_LETTERS_BARE_OF_CLASS] as const
    await pagesOf(pool, table, 'q', [sql.LIST_LETTERS, sql.LIST_LETTERS_OF_CLASS], bare)
    await walk(store.shelf, 'q')
  })
}
