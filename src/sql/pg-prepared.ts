import { createHash } from 'node:crypto'
import type { PgClientLike } from './pg-shapes.ts'

/**
 * Prepared statements save the server most of a small statement (parse and plan: 0.86 of 1.5 ms of CPU in one `ctx.tx`,
 * measured on 18), and break behind a pooler that changes the session between two transactions. So they are used where the
 * session is known to be our own: the process id that the server gave at the connection's start is the one that answers.
 * A pooler gives an id of its own making (PgBouncer: random bytes).
 */
const direct = new WeakMap<PgClientLike, boolean>()

const BACKEND_PID = 'SELECT pg_backend_pid() AS pid'

/** Finds out once per connection; one small question. */
export async function learnSession(client: PgClientLike): Promise<void> {
  if (direct.has(client)) return
  const told: unknown = client.processID
  if (typeof told !== 'number') return void direct.set(client, false)
  const { rows } = await client.query({ text: BACKEND_PID })
  const [row] = rows as readonly { readonly pid: unknown }[]
  direct.set(client, Number(row?.pid) === told)
}

/** The name under which this statement is prepared on this connection; undefined where it must not be. */
export function statementName(client: PgClientLike, sql: string): string | undefined {
  return direct.get(client) === true ? nameOf(sql) : undefined
}

/** After somebody else removed prepared statements from the session (DISCARD ALL): no more names on it. */
export function forgetSession(client: PgClientLike): void {
  direct.set(client, false)
}

/** Bounded: only statements of ours come here, and each is a constant of its schema. */
const names = new Map<string, string>()

function nameOf(sql: string): string {
  const known = names.get(sql)
  if (known !== undefined) return known
  const name = `millrace_${createHash('sha256').update(sql).digest('hex').slice(0, 32)}`
  names.set(sql, name)
  return name
}
