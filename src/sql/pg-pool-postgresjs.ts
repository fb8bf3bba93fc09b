import { postgresJsExecutor } from './pg-executor.ts'
import { beforeStatement } from './pg-fault.ts'
import { CALL_TIMEOUT_MS, LIMIT_IDLE, limited, poolClosed } from './pg-limit.ts'
import type { PgBeginOptions, PgCallOptions, PgPool, PgPoolOptions, PgWork } from './pg-pool.ts'
import { refuseUnsafeCommits } from './pg-postgresjs-commit.ts'
import type { PostgresJsLike, PostgresJsTransaction } from './pg-shapes.ts'

const ISOLATION = 'isolation level read committed read write'

/**
 * A pool on the user's `sql`. postgres.js cannot give up one connection, so a call that took too long is only no longer
 * waited for; its own `connect_timeout` and `keep_alive` end dead connections.
 */
export function postgresJsPool(sql: PostgresJsLike, options: PgPoolOptions): PgPool {
  const { clock, timeoutMs: defaultMs = CALL_TIMEOUT_MS } = options
  const closing = new AbortController()
  const plain = postgresJsExecutor(sql as unknown as PostgresJsTransaction)

  const check = ({ signal }: PgCallOptions): void => {
    try {
      signal?.throwIfAborted()
      closing.signal.throwIfAborted()
    } catch (error) {
      throw beforeStatement(error)
    }
  }
  const within = <T>(call: Promise<T>, timeoutMs = defaultMs): Promise<T> =>
    limited(call, { clock, timeoutMs, cutOff: closing.signal })

  let asked: Promise<void> | undefined
  /** Once per pool, before its first statement; asked again after a failure. */
  const safe = (): Promise<void> => {
    asked ??= within(refuseUnsafeCommits(sql)).catch((error: unknown) => {
      asked = undefined
      throw beforeStatement(error)
    })
    return asked
  }

  return {
    query: async (text, params, call = {}) => {
      check(call)
      await safe()
      return await within(plain.execute(text, params), call.timeoutMs)
    },
    begin: async <T>(run: PgWork<T>, call: PgBeginOptions = {}): Promise<T> => {
      check(call)
      await safe()
      const work = call.limitIdle === false ? run : idleLimited(run)
      return await transact(sql, work, (statement) => within(statement, call.timeoutMs))
    },
    listen: async (channel, ear) => {
      const { unlisten } = await within(sql.listen(channel, ear.hear))
      return { ping: async () => {}, close: () => void unlisten().catch(() => {}) }
    },
    close: async () => {
      if (!closing.signal.aborted) closing.abort(poolClosed())
    },
  }
}

/** Sent together with the first statement, and answered before it. Where it fails the transaction is over, as that one says. */
function idleLimited<T>(run: PgWork<T>): PgWork<T> {
  return (executor, client) => {
    executor.execute(LIMIT_IDLE, []).catch(() => {})
    return run(executor, client)
  }
}

/**
 * A limit for BEGIN and one for COMMIT (or ROLLBACK), as for each statement; what `run` does itself may take longer.
 */
async function transact<T>(
  sql: PostgresJsLike,
  run: PgWork<T>,
  within: <A>(call: Promise<A>) => Promise<A>,
): Promise<T> {
  const begun = Promise.withResolvers<void>()
  const done = Promise.withResolvers<void>()
  let late = false
  let value: { readonly of: T } | undefined
  const whole = sql.begin(ISOLATION, async (tx: PostgresJsTransaction) => {
    if (late) throw poolClosed()
    begun.resolve()
    const inner = postgresJsExecutor(tx)
    const execute = (text: string, params: readonly unknown[]) =>
      within(inner.execute(text, params))
    try {
      value = { of: await run({ execute }, tx) }
    } finally {
      done.resolve()
    }
  })
  try {
    await within(Promise.race([begun.promise, whole]))
  } catch (error) {
    late = true
    throw beforeStatement(error)
  }
  await Promise.race([done.promise, whole])
  await within(Promise.resolve(whole))
  if (value === undefined) throw poolClosed()
  return value.of
}
