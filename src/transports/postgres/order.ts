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
  const statement = before === 'send' ? sql.LOCK_KEYS : sql.LOCK_KNOWN_KEYS
  await executor.execute(statement, [queueId, textArray(keys)])
}
