import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import type { InboxConnector } from 'millrace/inbox'
import { postgresInbox, sqliteInbox } from 'millrace/inbox'
import { Pool, type PoolClient } from 'pg'
import postgres from 'postgres'

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type TxOf<C> = C extends InboxConnector<infer Tx> ? Tx : never

test("An effect's tx has the type of the user's own client.", async () => {
  const pool = new Pool()
  const sql = postgres()
  const node = new DatabaseSync(':memory:')
  const better = new Database(':memory:')
  const ofPool = postgresInbox({ pool })
  const ofSql = postgresInbox({ pool: sql })
  const ofNode = sqliteInbox({ db: node })
  const ofBetter = sqliteInbox({ db: better })
  const ofFile = sqliteInbox({ file: 'any.db' })
  const ofUrl = postgresInbox({ url: 'postgres://127.0.0.1/any' })
  const same: readonly true[] = [
    true satisfies Equal<TxOf<typeof ofPool>, PoolClient>,
    true satisfies Equal<TxOf<typeof ofSql>, postgres.TransactionSql>,
    true satisfies Equal<TxOf<typeof ofNode>, DatabaseSync>,
    true satisfies Equal<TxOf<typeof ofBetter>, Database.Database>,
    true satisfies Equal<TxOf<typeof ofFile>, DatabaseSync>,
  ]
  const rows: (tx: TxOf<typeof ofUrl>) => Promise<{ readonly rows: { readonly n: number }[] }> = (
    tx,
  ) => tx.query<{ readonly n: number }>('SELECT $1 AS n', [1])
  assert.equal(same.length, 5)
  assert.equal(typeof rows, 'function')
  assert.deepEqual(
    [ofPool, ofSql, ofNode, ofBetter, ofFile, ofUrl].map(({ name }) => name),
    ['postgres', 'postgres', 'sqlite', 'sqlite', 'sqlite', 'postgres'],
  )
  await pool.end()
  await sql.end()
  node.close()
  better.close()
})
