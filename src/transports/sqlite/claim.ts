import { afterCrash, saturated } from '../../model/history.ts'
import type { Row, SqliteHandle } from '../../sql/executor.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import { givePlaces } from './fair-places.ts'
import { takeReady } from './ready-lines.ts'
import { historyOf, recordsText } from './row.ts'
import {
  CLAIM_QUARANTINED,
  EXPIRED_LEASES,
  NEXT_FENCE,
  PROBE,
  PROMOTE_DUE,
  QUARANTINE,
} from './statements.ts'

/** Rows that one receive moves at most, so that no single one pays for a whole backlog. */
const STEP = 500

export interface ClaimRequest {
  readonly queueId: number
  readonly max: number
  readonly leaseMs: number
}

export interface Claimed {
  readonly rows: readonly Row[]
  readonly fence: number
  readonly leaseUntil: number
  /** Queues that got messages back from dead workers. */
  readonly reclaimed: ReadonlySet<number>
}

/** What a look into the tables says: something to do now, or nothing before `dueAt`. */
export interface Probe {
  readonly work: boolean
  readonly dueAt: number | undefined
}

export function probe(handle: SqliteHandle, queueId: number, now: number): Probe {
  const row = asRow(prepared(handle, PROBE).get(queueId))
  const leaseAt = momentOf(row.lease_at)
  // A paused queue still takes back what dead workers held, and then waits to be resumed.
  if (leaseAt !== undefined && leaseAt <= now) return { work: true, dueAt: now }
  if (row.paused === 1) return { work: false, dueAt: leaseAt }
  const dueAt = earliest(momentOf(row.due_at), leaseAt)
  return { work: row.ready === 1 || (dueAt !== undefined && dueAt <= now), dueAt }
}

/** Takes up to `max` messages, inside a write transaction; a quarantined one comes alone and first. */
export function claim(handle: SqliteHandle, request: ClaimRequest, now: number): Claimed {
  const { queueId, max, leaseMs } = request
  const reclaimed = reclaim(handle, now)
  const promoted = prepared(handle, PROMOTE_DUE).run(queueId, now, Math.max(STEP, max))
  if (Number(promoted.changes) > 0) givePlaces(handle, queueId)
  const leaseUntil = now + leaseMs
  const next = prepared(handle, NEXT_FENCE).all(queueId)[0]
  if (next === undefined) return { rows: [], fence: 0, leaseUntil, reclaimed }
  const fence = asNumber(asRow(next).fence)
  const ageingMs = asNumber(asRow(next).ageing_ms)
  const suspects = prepared(handle, CLAIM_QUARANTINED).all(leaseUntil, fence, queueId)
  const rows =
    suspects.length > 0
      ? suspects.map(asRow)
      : takeReady(handle, { queueId, max, ageingMs, leaseUntil, fence })
  return { rows, fence, leaseUntil, reclaimed }
}

/** Takes back what vanished holders had, for all queues: one counted attempt of class crashed, then alone. */
function reclaim(handle: SqliteHandle, now: number): ReadonlySet<number> {
  const queues = new Set<number>()
  for (const found of prepared(handle, EXPIRED_LEASES).all(now, STEP)) {
    const row = asRow(found)
    const { counted, crashes, records } = afterCrash(historyOf(row), now)
    const counts = [saturated(counted), saturated(crashes)]
    prepared(handle, QUARANTINE).run(now, ...counts, recordsText(records), row.seq)
    queues.add(asNumber(row.queue_id))
  }
  return queues
}

function momentOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a
}
