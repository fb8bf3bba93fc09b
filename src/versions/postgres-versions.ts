import type { PgExecutor } from '../sql/executor.ts'
import type { PostgresVersionStatements } from './postgres-statements.ts'
import { bigintOf, gapOf } from './version-rows.ts'
import type { VersionState } from './version-state.ts'

/** In the inbox's schema. A key is locked by its row, so two transactions decide one after the other. */
export function postgresVersions(
  { execute }: PgExecutor,
  statements: PostgresVersionStatements,
): VersionState {
  return {
    async applyNewer({ queue, key }, version) {
      return (await execute(statements.APPLY_NEWER, [queue, key, String(version)])).length > 0
    },
    async lockNext({ queue, key }, first) {
      const [row] = await execute(statements.LOCK_NEXT, [queue, key, String(first)])
      return BigInt(String(row?.next))
    },
    async setNext({ queue, key }, next) {
      await execute(statements.SET_NEXT, [queue, key, String(next)])
    },
    async keep({ queue, key }, { version, payload, sentAt }, max) {
      const params = [queue, key, String(version), payload, String(sentAt), max]
      const [row] = await execute(statements.KEEP, params)
      return row?.kept === true
    },
    async due({ queue, key }, version) {
      const rows = await execute(statements.DUE, [queue, key, String(version)])
      return rows.map(({ payload }) => String(payload))
    },
    async forgetBelow({ queue, key }, version) {
      await execute(statements.FORGET_BELOW, [queue, key, String(version)])
    },
    async lowest({ queue, key }) {
      const [row] = await execute(statements.LOWEST, [queue, key])
      return bigintOf(row?.lowest)
    },
    async gaps(queue, limit) {
      return (await execute(statements.GAPS, [queue, limit])).map(gapOf)
    },
  }
}
