import { read } from '../model/probe.ts'
import type { PgExecutor, Row, TransactionAdapter } from './executor.ts'
import { namingAborted } from './pg-aborted.ts'
import { forgetSession, statementName } from './pg-prepared.ts'
import { plainRows, plainTypes } from './pg-rows.ts'
import {
  isPgClient,
  isPostgresJsTransaction,
  type PgClientLike,
  type PostgresJsTransaction,
} from './pg-shapes.ts'

/**
 * How to run our statements in a transaction of the user's, recognised by shape: a node-postgres Client or PoolClient, the
 * `sql` of a postgres.js transaction, or `{ execute(sql, params) }`. Undefined for everything else.
 */
export function pgExecutor(tx: unknown): PgExecutor | undefined {
  const executor = executorOf(tx)
  return executor && namingAborted(executor)
}

function executorOf(tx: unknown): PgExecutor | undefined {
  if (isPgClient(tx)) return clientExecutor(tx)
  if (isPostgresJsTransaction(tx)) return postgresJsExecutor(tx)
  if (isAdapter(tx)) return adapterExecutor(tx)
  return undefined
}

export function clientExecutor(client: PgClientLike): PgExecutor {
  return { execute: (sql, params) => queryClient(client, sql, params) }
}

const NO_SUCH_STATEMENT = '26000'

/** The last statement of ours on each client that has not ended. */
const turns = new WeakMap<PgClientLike, Promise<unknown>>()

/** One after another: pg warns of a query on a client that runs one, and version 9 will refuse it. */
export function queryClient(
  client: PgClientLike,
  sql: string,
  params: readonly unknown[],
): Promise<readonly Row[]> {
  const run = (): Promise<readonly Row[]> => queryNow(client, sql, params)
  const before = turns.get(client)
  const mine = before === undefined ? run() : before.then(run, run)
  turns.set(client, mine)
  const end = (): void => {
    if (turns.get(client) === mine) turns.delete(client)
  }
  mine.then(end, end)
  return mine
}

async function queryNow(
  client: PgClientLike,
  sql: string,
  params: readonly unknown[],
): Promise<readonly Row[]> {
  const name = statementName(client, sql)
  const named = name === undefined ? {} : { name }
  try {
    const query = { ...named, text: sql, values: [...params], types: plainTypes }
    const { rows } = await client.query(query)
    return rows as readonly Row[]
  } catch (error) {
    if (read(error, 'code') === NO_SUCH_STATEMENT) forgetSession(client)
    throw error
  }
}

/** Never prepared: postgres.js does not tell whether its session is its own (see `learnSession`), and PgBouncer changes it. */
export function postgresJsExecutor(tx: PostgresJsTransaction): PgExecutor {
  return {
    execute: async (sql, params) => plainRows(await tx.unsafe(sql, params, { prepare: false })),
  }
}

function adapterExecutor(adapter: TransactionAdapter): PgExecutor {
  return {
    execute: async (sql, params) => {
      const answer: unknown = await adapter.execute(sql, params)
      return plainRows(hasRows(answer) ? answer.rows : answer)
    },
  }
}

/** Some clients answer `{ rows }`, which is easily passed on as it is. */
function hasRows(answer: unknown): answer is { readonly rows: unknown } {
  return typeof answer === 'object' && answer !== null && !Array.isArray(answer) && 'rows' in answer
}

/** Clients with an `execute` of another meaning have a `query`, `select` or `prepare` beside it. */
function isAdapter(tx: unknown): tx is TransactionAdapter {
  if (typeof tx !== 'object' || tx === null || !('execute' in tx)) return false
  const isOther = 'query' in tx || 'select' in tx || 'prepare' in tx
  return typeof tx.execute === 'function' && !isOther
}
