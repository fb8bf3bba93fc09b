import type { SqliteHandle } from '../sql/executor.ts'
import { asRow, prepared } from '../sql/sqlite-handle.ts'
import type { StuckRows } from '../transport/stuck-rows.ts'
import { AUDIT, DISCARD, KEEP_AUDIT, RETRY, STUCK } from './sqlite-statements.ts'
import { discardedOf, stuckRowOf } from './stuck.ts'

export interface SqliteStuckContext {
  readonly handle: SqliteHandle
  readonly now: () => number
  readonly read: <T>(work: () => T) => Promise<T>
  readonly write: <T>(work: () => T) => Promise<T>
}

export function sqliteStuck({ handle, now, read, write }: SqliteStuckContext): StuckRows {
  const touched = (sql: string, queue: string, ids: readonly string[]): readonly string[] =>
    [...new Set(ids)].filter(
      (id) => prepared(handle, sql).get(now(), queue, id, now()) !== undefined,
    )
  return {
    list: (queue, { limit, after = '0' }) =>
      read(() =>
        prepared(handle, STUCK).all(queue, Number(after), limit).map(asRow).map(stuckRowOf),
      ),
    retry: (queue, ids) => write(() => touched(RETRY, queue, ids)),
    discard: (queue, ids, { actor, reason }) =>
      write(() => {
        const gone = touched(DISCARD, queue, ids)
        for (const id of gone) prepared(handle, KEEP_AUDIT).run(now(), queue, id, actor, reason)
        return gone
      }),
    audit: (queue, limit) =>
      read(() =>
        prepared(handle, AUDIT)
          .all(queue, limit)
          .map((row) => discardedOf(queue, asRow(row))),
      ),
  }
}
