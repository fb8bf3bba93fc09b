import type { Envelope } from '../../model/envelope.ts'
import type { PgExecutor } from '../../sql/executor.ts'
import { textArray } from '../../sql/pg-array.ts'
import type { Store } from './store.ts'

/** The ordering keys of these, each once. */
export function keysOf(envelopes: readonly Envelope[]): readonly string[] {
  const keys = envelopes.flatMap(({ orderingKey }) => orderingKey ?? [])
  return keys.length < 2 ? keys : [...new Set(keys)]
}

/** Within a transaction, before a statement that sends to several keys; one key cannot be in disorder. */
export async function lockKeys(
  { sql }: Pick<Store, 'sql'>,
  executor: PgExecutor,
  queueId: number,
  keys: readonly string[],
): Promise<void> {
  if (keys.length > 1) await executor.execute(sql.LOCK_KEYS, [queueId, textArray(keys)])
}

/** The same before messages of several keys end. */
export async function lockKnownKeys(
  { sql }: Pick<Store, 'sql'>,
  executor: PgExecutor,
  queueId: number,
  keys: readonly string[],
): Promise<void> {
  if (keys.length > 1) await executor.execute(sql.LOCK_KNOWN_KEYS, [queueId, textArray(keys)])
}
