import type { Row, SqliteHandle } from '../../sql/executor.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import { type LineHead, lineTurn } from '../../transport/ageing.ts'
import { CLAIM_LINE, CLAIM_READY, HEAD_OF_LINE, NEXT_LINE } from './statements.ts'

export interface TakeRequest {
  readonly queueId: number
  readonly max: number
  readonly ageingMs: number
  readonly leaseUntil: number
  readonly fence: number
}

/** Up to `max` ready messages, now in flight, in the order in which they are to be handed out. */
export function takeReady(handle: SqliteHandle, request: TakeRequest): readonly Row[] {
  const { queueId, max, ageingMs, leaseUntil, fence } = request
  const heads = headsOf(handle, queueId)
  // By far the most queues use one priority: one walk along the index.
  if (heads.length < 2) {
    return inOrder(prepared(handle, CLAIM_READY).all(leaseUntil, fence, queueId, max))
  }
  const taken: Row[] = []
  while (taken.length < max) {
    const turn = lineTurn(heads, ageingMs)
    if (turn === undefined) break
    const { head, untilReadyAt } = turn
    const left = max - taken.length
    const params = [leaseUntil, fence, queueId, head.priority, untilReadyAt, left]
    taken.push(...inOrder(prepared(handle, CLAIM_LINE).all(...params)))
    const next = prepared(handle, HEAD_OF_LINE).get(queueId, head.priority)
    if (next === undefined) heads.splice(heads.indexOf(head), 1)
    else head.readyAt = asNumber(asRow(next).ready_at)
  }
  return taken
}

type Head = { -readonly [Name in keyof LineHead]: LineHead[Name] }

const ABOVE_ALL = 10

/** One look for each priority that has something. */
function headsOf(handle: SqliteHandle, queueId: number): Head[] {
  const heads: Head[] = []
  for (let above = ABOVE_ALL; ; ) {
    const found = prepared(handle, NEXT_LINE).get(queueId, above)
    if (found === undefined) return heads
    const { priority, ready_at } = asRow(found)
    above = asNumber(priority)
    heads.push({ priority: above, readyAt: asNumber(ready_at) })
  }
}

/** RETURNING gives rows in no promised order. */
function inOrder(rows: readonly unknown[]): readonly Row[] {
  return rows
    .map(asRow)
    .sort(
      (a, b) =>
        asNumber(b.priority) - asNumber(a.priority) ||
        asNumber(a.ready_at) - asNumber(b.ready_at) ||
        asNumber(a.seq) - asNumber(b.seq),
    )
}
