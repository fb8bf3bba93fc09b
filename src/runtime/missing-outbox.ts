import { mayBeOneDatabase } from '../sql/pg-migrate.ts'
import type { Parts } from './parts.ts'

/** Those that have one. An inbox of another kind may have no outbox to name. */
const OUTBOXES: ReadonlyMap<string, string> = new Map([
  ['postgres', 'postgresOutbox'],
  ['sqlite', 'sqliteOutbox'],
])

/**
 * A send within `ctx.tx` that nobody could store, one sentence or none. It is no refusal, since a handler need not send there; but with another
 * backend in place of the inbox's own, each message of one that does is dead at once.
 */
export function missingOutbox<Tx>({
  inbox,
  outbox,
  transport,
}: Pick<Parts<Tx>, 'inbox' | 'outbox' | 'transport'>): readonly string[] {
  const fitting = inbox && OUTBOXES.get(inbox.name)
  if (inbox === undefined || fitting === undefined) return []
  const reached = [transport.transaction && transport.databaseId, outbox?.databaseId]
  const isReached = reached.some((id) => id !== undefined && mayBeOneDatabase(id, inbox.databaseId))
  if (isReached) return []
  const others = [`transport ${transport.name}`, ...(outbox ? [`outbox ${outbox.name}`] : [])]
  return [
    `the database of inbox ${inbox.name} is not that of ${others.join(' or ')}: what a handler sends within ctx.tx is refused ` +
      `(MILLRACE_FOREIGN_TRANSACTION) and its message is dead at once; if one does, give createMillrace outbox: ${fitting}(…) of the inbox's database`,
  ]
}
