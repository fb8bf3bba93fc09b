import { OptionsError } from '../model/errors.ts'
import type { PostgresJsLike } from './pg-shapes.ts'

/**
 * Sees itself: prepared, it stands in the view under the name that the server's session knows it by. With a parameter,
 * because postgres.js prepares none without.
 */
const PREPARED_AS = `
SELECT name, pg_catalog.pg_backend_pid() AS pid
FROM pg_catalog.pg_prepared_statements WHERE statement LIKE '%FROM pg_catalog.pg_prepared_statements WHERE%' AND $1`

interface Prepared {
  readonly state: { readonly pid: number }
  readonly statement: { readonly name: string }
}

/**
 * Refuses a `sql` whose commits may be rolled back without an error. postgres.js prepares its own `commit`, and a pooler in
 * transaction mode sends it to a session that has never seen it. The server refuses, which aborts the transaction;
 * postgres.js prepares it again and repeats it, and the server answers a COMMIT of an aborted transaction with ROLLBACK,
 * which postgres.js takes for success. Measured with 3.4.9 behind PgBouncer 1.18: of 300 transactions that resolved, 31 were
 * there. A pooler that tracks prepared statements gives them names of its own, and is safe.
 * @throws MILLRACE_INVALID_OPTIONS
 */
export async function refuseUnsafeCommits(sql: PostgresJsLike): Promise<void> {
  const found: unknown = await sql.unsafe(PREPARED_AS, [true], { prepare: true })
  if (!isPrepared(found)) return
  const { name } = found.statement
  const shown = found.find((row) => row.name === name)
  if (shown === undefined || Number(shown.pid) === found.state.pid) return
  throw new OptionsError('postgres', [
    'pool: this `sql` of postgres.js prepares statements through a pooler that does not track them, so its commits can be rolled back without an error; create it with { prepare: false }',
  ])
}

/** False for a `sql` with `prepare: false`: nothing has a name then. */
function isPrepared(
  found: unknown,
): found is readonly { readonly name: unknown; readonly pid: unknown }[] & Prepared {
  if (!Array.isArray(found) || !('statement' in found) || !('state' in found)) return false
  const { statement, state } = found as Partial<Prepared>
  return (
    typeof statement?.name === 'string' && statement.name !== '' && typeof state?.pid === 'number'
  )
}
