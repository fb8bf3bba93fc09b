import type { Row, SqliteHandle } from '../../sql/executor.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import { type LineTurn, lineTurn } from '../../transport/ageing.ts'
import { CLAIM_FAIR_LINE, NEXT_FAIR_LINE, OLDEST_OF_FAIR_LINE } from './fair-statements.ts'
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
  const lines = linesOf(handle, queueId)
  // By far the most queues use one priority and share nothing out: one walk along the index.
  if (lines.length < 2 && lines[0]?.isFair !== true) {
    return inOrder(prepared(handle, CLAIM_READY).all(leaseUntil, fence, queueId, max))
  }
  const taken: Row[] = []
  while (taken.length < max) {
    const turn = lineTurn(lines, ageingMs)
    if (turn === undefined) break
    const { head } = turn
    taken.push(...takeFrom(handle, request, turn, max - taken.length))
    const readyAt = oldestOf(handle, queueId, head)
    if (readyAt === undefined) lines.splice(lines.indexOf(head), 1)
    else head.readyAt = readyAt
  }
  return taken
}

interface Line {
  readonly priority: number
  /** Goes by the places of fair keys, and stands where its oldest stands, so that none in it waits for ever. */
  readonly isFair: boolean
  readyAt: number
}

function takeFrom(
  handle: SqliteHandle,
  { queueId, leaseUntil, fence }: TakeRequest,
  { head: { isFair, priority }, untilReadyAt }: LineTurn<Line>,
  left: number,
): readonly Row[] {
  const params = [leaseUntil, fence, queueId, priority]
  if (!isFair) return inOrder(prepared(handle, CLAIM_LINE).all(...params, untilReadyAt, left))
  // The next one need not be the oldest: beside other lines its turn is judged anew after each.
  const most = untilReadyAt === Number.POSITIVE_INFINITY ? left : 1
  return inPlace(prepared(handle, CLAIM_FAIR_LINE).all(...params, most))
}

const ABOVE_ALL = 10

/** One look for each priority that has something, of either kind. */
function linesOf(handle: SqliteHandle, queueId: number): Line[] {
  return [
    ...linesBelow(handle, queueId, NEXT_LINE, false),
    ...linesBelow(handle, queueId, NEXT_FAIR_LINE, true),
  ]
}

function linesBelow(handle: SqliteHandle, queueId: number, next: string, isFair: boolean): Line[] {
  const lines: Line[] = []
  for (let above = ABOVE_ALL; ; ) {
    const found = prepared(handle, next).get(queueId, above)
    if (found === undefined) return lines
    above = asNumber(asRow(found).priority)
    const line = { priority: above, isFair, readyAt: 0 }
    line.readyAt = oldestOf(handle, queueId, line) ?? 0
    lines.push(line)
  }
}

function oldestOf(
  handle: SqliteHandle,
  queueId: number,
  { isFair, priority }: Line,
): number | undefined {
  const found = prepared(handle, isFair ? OLDEST_OF_FAIR_LINE : HEAD_OF_LINE).get(queueId, priority)
  return found === undefined ? undefined : asNumber(asRow(found).ready_at)
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

function inPlace(rows: readonly unknown[]): readonly Row[] {
  return rows
    .map(asRow)
    .sort((a, b) => asNumber(a.place) - asNumber(b.place) || asNumber(a.seq) - asNumber(b.seq))
}
