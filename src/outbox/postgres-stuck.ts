import { backendError } from '../model/backend-error.ts'
import type { Row } from '../sql/executor.ts'
import { textArray } from '../sql/pg-array.ts'
import { pgFault } from '../sql/pg-fault.ts'
import type { PgPool } from '../sql/pg-pool.ts'
import type { StuckRows } from '../transport/stuck-rows.ts'
import type { PostgresOutboxStatements } from './postgres-statements.ts'
import { discardedOf, stuckRowOf } from './stuck.ts'

const FIRST_PLACE = '0'

export function postgresStuck(pool: PgPool, statements: PostgresOutboxStatements): StuckRows {
  const query = async (
    sql: string,
    [queue, ...more]: readonly [string, ...unknown[]],
    reads: boolean,
  ): Promise<readonly Row[]> => {
    try {
      return await pool.query(sql, [queue, ...more])
    } catch (cause) {
      const where = `outbox of queue "${queue}"`
      throw backendError({ ...pgFault(cause), cause }, { where, reads, fields: { queue } })
    }
  }
  const idsOf = (rows: readonly Row[]): readonly string[] => rows.map(({ id }) => String(id))
  return {
    list: async (queue, { limit, after = FIRST_PLACE }) =>
      (await query(statements.STUCK, [queue, after, limit], true)).map(stuckRowOf),
    retry: async (queue, ids) =>
      idsOf(await query(statements.RETRY, [queue, textArray(ids)], false)),
    discard: async (queue, ids, { actor, reason }) =>
      idsOf(await query(statements.DISCARD, [queue, textArray(ids), actor, reason], false)),
    audit: async (queue, limit) =>
      (await query(statements.AUDIT, [queue, limit], true)).map((row) => discardedOf(queue, row)),
  }
}
