import type { Envelope } from '../../model/envelope.ts'
import type { PgExecutor } from '../../sql/executor.ts'
import { textArray } from '../../sql/pg-array.ts'
import type { Store } from './store.ts'

/** The ordering keys of these, each once. */
export function keysOf(envelopes: readonly Envelope[]): readonly string[] {
  const keys = envelopes.flatMap(({ orderingKey }) => orderingKey ?? [])
  return keys.length < 2 ? keys : [...new Set(keys)]
}

/**
 * Within a transaction, before a statement that sends to several keys or ends messages of several; one key cannot be in disorder.
 * A key that is only now sent to need not be known yet.
 */
export async function lockKeys(
  { sql }: Pick<Store, 'sql'>,
  executor: PgExecutor,
  queueId: number,
  { keys, before }: { readonly keys: readonly string[]; readonly before: 'send' | 'end' },
): Promise<void> {
  if (keys.length < 2) return
  if (before === 'send') await executor.execute(sql.LOCK_KEYS, [queueId, textArray(keys)])
  else await executor.execute(sql.LOCK_KNOWN_KEYS, [queueId, textArray(keys), null])
}

/** The same before messages end in a transaction of our own, also those of one key; waits at most `lockMs` for each. */
export async function lockKnownKeys(
  { sql }: Pick<Store, 'sql'>,
  executor: PgExecutor,
  queueId: number,
  { keys, lockMs }: { readonly keys: readonly string[]; readonly lockMs: number },
): Promise<void> {
  if (keys.length === 0) return
  await executor.execute(sql.LOCK_KNOWN_KEYS, [queueId, textArray(keys), String(lockMs)])
}

/** Locks those that are free, at once; answers those that transactions of others hold. */
export async function lockFreeKeys(
  { sql }: Pick<Store, 'sql'>,
  executor: PgExecutor,
  queueId: number,
  keys: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await executor.execute(sql.LOCK_FREE_KEYS, [queueId, textArray(keys)])
  return new Set(rows.map((row) => String(row.key)))
}
