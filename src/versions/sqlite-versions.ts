import type { Row, SqliteHandle } from '../sql/executor.ts'
import { asNumber, asRow, prepared } from '../sql/sqlite-handle.ts'
import {
  APPLY_NEWER,
  BEGIN_KEY,
  COUNT,
  DUE,
  FORGET_BELOW,
  GAPS,
  IS_HERE,
  KEEP,
  LOWEST,
  NEXT,
  SET_NEXT,
} from './sqlite-statements.ts'
import { bigintOf, gapOf } from './version-rows.ts'
import type { VersionState } from './version-state.ts'

/** In the inbox's file. The transaction of an effect has the write lock, so nothing here can change in between. */
export function sqliteVersions(handle: SqliteHandle): VersionState {
  const run = (sql: string, ...params: readonly unknown[]) => prepared(handle, sql).run(...params)
  const row = (sql: string, ...params: readonly unknown[]): Row =>
    asRow(prepared(handle, sql).get(...params))
  const rows = (sql: string, ...params: readonly unknown[]): readonly Row[] =>
    prepared(handle, sql)
      .all(...params)
      .map(asRow)
  return {
    applyNewer: ({ queue, key }, version) =>
      Number(run(APPLY_NEWER, queue, key, String(version)).changes) > 0,
    lockNext({ queue, key }, first) {
      run(BEGIN_KEY, queue, key, String(first))
      return BigInt(String(row(NEXT, queue, key).next))
    },
    setNext: ({ queue, key }, next) => void run(SET_NEXT, String(next), queue, key),
    keep({ queue, key }, { version, payload, sentAt }, max) {
      if (prepared(handle, IS_HERE).get(queue, key, String(version)) !== undefined) return true
      if (asNumber(row(COUNT, queue, key).n) >= max) return false
      run(KEEP, queue, key, String(version), payload, sentAt)
      return true
    },
    due({ queue, key }, version) {
      const from = String(version)
      return rows(DUE, queue, key, from, from).map(({ payload }) => String(payload))
    },
    forgetBelow: ({ queue, key }, version) => void run(FORGET_BELOW, queue, key, String(version)),
    lowest: ({ queue, key }) => bigintOf(row(LOWEST, queue, key).lowest),
    gaps: (queue, limit) => rows(GAPS, queue, limit).map(gapOf),
  }
}
