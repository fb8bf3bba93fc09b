import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import type { PgExecutor } from '../sql/executor.ts'
import { bytesArray, numberArray, textArray } from '../sql/pg-array.ts'
import { columnsOf, ROW_TYPE } from './row.ts'

/** Adds a batch in one statement, within whatever transaction the executor is in. */
export async function addRows(
  executor: PgExecutor,
  statement: string,
  queue: string,
  batch: readonly Envelope[],
): Promise<readonly Sent[]> {
  if (batch.length === 0) return []
  const columns = batch.map(columnsOf)
  const stored = await executor.execute(statement, [
    queue,
    ROW_TYPE,
    textArray(batch.map(({ id }) => id)),
    textArray(columns.map(({ aggregateId }) => aggregateId)),
    bytesArray(batch.map(({ body }) => body)),
    textArray(columns.map(({ idempotencyKey }) => idempotencyKey)),
    textArray(columns.map(({ orderingKey }) => orderingKey)),
    numberArray(batch.map(({ priority }) => priority)),
    numberArray(columns.map(({ delayMs }) => delayMs)),
    numberArray(columns.map(({ readyAt }) => readyAt)),
    textArray(columns.map(({ remember }) => remember)),
    textArray(columns.map(({ headers }) => headers)),
    textArray(columns.map(({ share }) => share)),
  ])
  const fresh = new Set(stored.map(({ id }) => String(id)))
  // The second of two with one id in a batch is a duplicate too.
  return batch.map(({ id }) => ({ ok: true, id, duplicate: !fresh.delete(id) }))
}
