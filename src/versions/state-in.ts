import { MillraceError } from '../model/errors.ts'
import { pgExecutor } from '../sql/pg-executor.ts'
import { allInSchema } from '../sql/pg-name.ts'
import { isSqliteHandle } from '../sql/sqlite-handle.ts'
import { postgresVersionStatements } from './postgres-statements.ts'
import { postgresVersions } from './postgres-versions.ts'
import { sqliteVersions } from './sqlite-versions.ts'
import type { VersionState } from './version-state.ts'

/** Finds the versions in whatever transaction an effect was given; `schema` holds the inbox's tables on Postgres. */
export function statesIn(queue: string, schema: string): (tx: unknown) => VersionState {
  const statements = allInSchema(postgresVersionStatements, schema)
  return (tx) => {
    if (isSqliteHandle(tx)) return sqliteVersions(tx)
    const executor = pgExecutor(tx)
    if (executor !== undefined) return postgresVersions(executor, statements)
    throw new MillraceError(
      'MILLRACE_FOREIGN_TRANSACTION',
      `queue "${queue}": versions are kept in the tables of postgresInbox or sqliteInbox, and this is no transaction of either; ` +
        'call the effect with what ctx.tx gives (in tests: sqliteInbox on a file)',
      { fields: { queue } },
    )
  }
}
