import { afterCrash, saturated } from '../../model/history.ts'
import type { PgExecutor, Row } from '../../sql/executor.ts'
import { numberArray, textArray } from '../../sql/pg-array.ts'
import { historyOf, momentOf, recordsText } from './row.ts'
import type { Statements, Store } from './store.ts'

/** What one sweep looks at, at most. */
const CLAIMS_STEP = 500
const MESSAGES_STEP = 500

/**
 * Takes back what vanished holders had, for all queues: one counted attempt of class crashed, then alone. Answers the
 * queues that got messages back.
 */
export async function reclaim(store: Store): Promise<ReadonlySet<number>> {
  return await store.pool.begin((executor) => sweep(store.sql, executor))
}

async function sweep(sql: Statements, executor: PgExecutor): Promise<ReadonlySet<number>> {
  const claims = await executor.execute(sql.EXPIRED_CLAIMS, [CLAIMS_STEP])
  if (claims.length === 0) return new Set()
  const ids = numberArray(claims.map((row) => Number(row.claim_id)))
  const rows = await executor.execute(sql.MESSAGES_OF_CLAIMS, [ids, MESSAGES_STEP])
  if (rows.length > 0) await executor.execute(sql.QUARANTINE, quarantineParams(rows))
  await executor.execute(sql.END_CLAIMS, [ids])
  return new Set(rows.map((row) => Number(row.queue_id)))
}

function quarantineParams(rows: readonly Row[]): readonly unknown[] {
  const histories = rows.map((row) => afterCrash(historyOf(row), momentOf(row.now)))
  return [
    numberArray(rows.map((row) => Number(row.seq))),
    numberArray(histories.map(({ counted }) => saturated(counted))),
    numberArray(histories.map(({ crashes }) => saturated(crashes))),
    textArray(histories.map(({ records }) => recordsText(records))),
  ]
}
