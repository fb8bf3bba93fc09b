import type { SqliteHandle } from '../../sql/executor.ts'
import { asRow, prepared } from '../../sql/sqlite-handle.ts'
import {
  ADVANCE_KEY,
  HALT_KEY,
  IS_KEY_TAKEN,
  LEADERLESS_KEYS,
  UNHALT_KEY,
} from './key-statements.ts'

/** An ordering key of one queue. All of these act inside the open transaction of this handle. */
export interface QueueKey {
  readonly queueId: number
  readonly key: string
}

/** Whether a message of it would have to wait behind another one. */
export function isTaken(handle: SqliteHandle, { queueId, key }: QueueKey): boolean {
  return asRow(prepared(handle, IS_KEY_TAKEN).get(queueId, key, queueId, key)).taken === 1
}

/** Its head has ended: the next one stands in line. Harmless when nothing waits, or it is halted. */
export function advance(handle: SqliteHandle, { queueId, key }: QueueKey, now: number): void {
  prepared(handle, ADVANCE_KEY).run(now, queueId, key)
}

/** Its head has died; stops it where deaths halt. */
export function halt(
  handle: SqliteHandle,
  { queueId, key }: QueueKey,
  messageId: string,
  now: number,
): void {
  prepared(handle, HALT_KEY).run(key, messageId, now, queueId)
}

/** True when this message had halted it. */
export function unhalt(
  handle: SqliteHandle,
  { queueId, key }: QueueKey,
  messageId: string,
): boolean {
  return Number(prepared(handle, UNHALT_KEY).run(queueId, key, messageId).changes) > 0
}

export function advanceLeaderless(handle: SqliteHandle, queueId: number, now: number): void {
  for (const row of prepared(handle, LEADERLESS_KEYS).all(queueId)) {
    advance(handle, { queueId, key: String(asRow(row).ordering_key) }, now)
  }
}
