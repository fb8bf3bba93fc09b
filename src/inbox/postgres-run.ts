import { backendError } from '../model/backend-error.ts'
import type { Clock } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import { newId } from '../model/ids.ts'
import type { PgExecutor } from '../sql/executor.ts'
import { isAborted } from '../sql/pg-aborted.ts'
import { pgFault } from '../sql/pg-fault.ts'
import type { PgPool } from '../sql/pg-pool.ts'
import type { InboxKey, InboxOutcome, InboxWork } from './inbox.ts'
import { storedKey } from './key.ts'
import type { PostgresInboxStatements } from './postgres-statements.ts'

export interface PostgresRunContext {
  readonly pool: PgPool
  readonly statements: PostgresInboxStatements
  readonly ttlMs: number
  /** 130000 for Postgres 13. */
  readonly version: number
  readonly clock: Clock
  readonly random: () => number
}

/** How far a run got; what `begin` rejects with does not tell. */
interface Progress<T> {
  outcome: InboxOutcome<T> | undefined
  /** What the effect threw: it is the user's and stays as it is. */
  thrown?: { readonly error: unknown }
}

/** Thrown inside the transaction to roll it back without an error of anybody's. */
const rollback: unique symbol = Symbol('rollback')

export async function runOnPostgres<T>(
  context: PostgresRunContext,
  key: InboxKey,
  work: InboxWork<unknown, T>,
): Promise<InboxOutcome<T>> {
  const progress: Progress<T> = { outcome: undefined }
  try {
    await context.pool.begin(
      async (executor, client) => {
        progress.outcome = await inside(context, key, work, progress, executor, client)
        if (progress.outcome.kind !== 'committed') throw rollback
      },
      { timeoutMs: work.leaseMs, limitIdle: false },
    )
  } catch (error) {
    if (error !== rollback) throw commitError(error, key, progress)
  }
  if (progress.outcome === undefined) throw new Error('the transaction ended without an outcome')
  return progress.outcome
}

async function inside<T>(
  context: PostgresRunContext,
  key: InboxKey,
  work: InboxWork<unknown, T>,
  progress: Progress<T>,
  executor: PgExecutor,
  tx: unknown,
): Promise<InboxOutcome<T>> {
  if (work.isOver?.()) return { kind: 'lost' }
  const { statements, ttlMs } = context
  const name = newId(context.clock, context.random)
  const limits = context.version >= 170_000 ? statements.LIMITS_17 : statements.LIMITS
  await executor.execute(limits, [String(Math.max(1, Math.ceil(work.leaseMs))), name])
  const value = await effectOf(work, progress, tx)
  const params = [key.queue, storedKey(key.key), ttlMs, name]
  const [row] = await executor.execute(statements.RECORD_IN_RUN, params)
  if (row?.open !== true) throw endedByEffect(key)
  if (row.recorded !== true) return { kind: 'duplicate' }
  return (await work.last(tx)) ? { kind: 'committed', value } : { kind: 'lost' }
}

async function effectOf<T>(
  work: InboxWork<unknown, T>,
  progress: Progress<T>,
  tx: unknown,
): Promise<T> {
  try {
    return await work.effect(tx)
  } catch (error) {
    progress.thrown = { error }
    throw error
  }
}

/** Only when everything but the answer to COMMIT was there can the outcome be unknown. */
function commitError(error: unknown, key: InboxKey, progress: Progress<unknown>): unknown {
  if (progress.thrown?.error === error) return error
  const fault = pgFault(error)
  if (isAborted(error)) return swallowed(key, error)
  if (progress.outcome?.kind !== 'committed') {
    const fields = { queue: key.queue }
    return backendError(fault, { where: `queue "${key.queue}", ctx.tx`, reads: true, fields })
  }
  // A constraint of the user's that is checked at the commit.
  if (fault.outcome !== 'unknown') return error
  return new MillraceError(
    'MILLRACE_OUTCOME_UNKNOWN',
    `queue "${key.queue}": the connection was lost while the effect was committed; it may have happened, ` +
      'the next attempt finds the key in the inbox if it did',
    { cause: error, retryable: true, fields: { queue: key.queue } },
  )
}

function swallowed(key: InboxKey, cause: unknown): MillraceError {
  return new MillraceError(
    'MILLRACE_BACKEND_FAULT',
    `queue "${key.queue}": a statement of the function given to ctx.tx failed and its error was not let out, so Postgres takes no more of ` +
      'this transaction (25P02) and nothing was committed; let the error out, or put the statement between SAVEPOINT and ROLLBACK TO',
    { cause, retryable: true, fields: { queue: key.queue } },
  )
}

function endedByEffect(key: InboxKey): MillraceError {
  return new MillraceError(
    'MILLRACE_FOREIGN_TRANSACTION',
    `queue "${key.queue}": the function given to ctx.tx ended the transaction itself (COMMIT or ROLLBACK), so its key ` +
      'could not be recorded with it; leave the transaction open, it is committed when the function returns',
    { fields: { queue: key.queue } },
  )
}
