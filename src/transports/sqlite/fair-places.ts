import type { SqliteHandle } from '../../sql/executor.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import { fairPlace } from '../../transport/fair-share.ts'
import { ARRIVED, FRONT_OF_LINE, GIVE_PLACE, LAST_OF_SHARE } from './fair-statements.ts'

/**
 * Gives a place to each message that became ready in this transaction and has a fair key: called before it ends, whatever made them
 * ready. SQLite has one writer, so the places of a key are never taken twice.
 */
export function givePlaces(handle: SqliteHandle, queueId: number): void {
  const arrived = prepared(handle, ARRIVED).all(queueId).map(asRow)
  const fronts = new Map<number, number>()
  const lasts = new Map<string, number>()
  for (const { seq, priority, fair_key, fair_weight } of arrived) {
    const level = asNumber(priority)
    const key = String(fair_key)
    const share = `${level} ${key}`
    const front = fronts.get(level) ?? placeAt(handle, FRONT_OF_LINE, queueId, level)
    const last = lasts.get(share) ?? placeAt(handle, LAST_OF_SHARE, queueId, level, key)
    const weight = fair_weight === null ? undefined : asNumber(fair_weight)
    const place = fairPlace({ front, last }, weight)
    prepared(handle, GIVE_PLACE).run(place, seq)
    fronts.set(level, front ?? place)
    lasts.set(share, place)
  }
}

function placeAt(
  handle: SqliteHandle,
  sql: string,
  ...params: readonly unknown[]
): number | undefined {
  const found = prepared(handle, sql).get(...params)
  return found === undefined ? undefined : asNumber(asRow(found).place)
}
