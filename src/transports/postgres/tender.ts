import { pause } from '../../model/clock.ts'
import { numberArray } from '../../sql/pg-array.ts'
import { reclaim } from './reclaim.ts'
import { query, type Store } from './store.ts'

/** What a look at a queue says. */
export interface Look {
  readonly paused: boolean
  readonly ready: boolean
  /** Ms until something falls due or a lease runs out. */
  readonly nextMs: number
}

/** Looks after what no receive asks for: messages that fall due, leases that ran out, claims that are over. */
export interface Tender {
  /** True when a look is due although there is work: in a busy queue, too, delayed messages must come in time. */
  isDue(): boolean
  look(): Promise<Look>
}

/** How often a busy queue is looked at, and leases at most. */
const EVERY_MS = 1_000
/** How long a look waits for leases that another sweep is just taking back. */
const PATIENCE = 4
const PATIENCE_MS = 10
/** Messages that one look moves at most. */
const PROMOTE_STEP = 1_000

export function openTender(
  store: Store,
  queueId: number,
  takeLeft: () => readonly number[],
): Tender {
  const { clock } = store
  let dueAt = Number.NEGATIVE_INFINITY
  let sweptAt = Number.NEGATIVE_INFINITY

  const sweep = async (): Promise<void> => {
    const now = clock.now()
    if (now - sweptAt < EVERY_MS) return
    sweptAt = now
    for (const id of await reclaim(store)) store.bell.ring(id)
  }

  return {
    isDue: () => clock.now() >= dueAt,
    async look() {
      const left = takeLeft()
      if (left.length > 0) await query(store, store.sql.END_CLAIMS, [numberArray(left)])
      let row = await tend(store, queueId)
      if (row.leaseMs <= 0) {
        await sweep()
        row = await tend(store, queueId)
      }
      // Another sweep has them in hand; suspects go first, so it is worth a moment.
      for (let tries = 0; row.leaseMs <= 0 && tries < PATIENCE; tries++) {
        await pause(clock, PATIENCE_MS, store.closing)
        row = await tend(store, queueId)
      }
      // A lease that ran out and was not to be had (another sweep has it) is looked at again soon.
      const leaseMs = row.leaseMs > 0 ? row.leaseMs : EVERY_MS / 4
      const nextMs = row.moved === PROMOTE_STEP ? 0 : Math.max(1, Math.min(row.dueMs, leaseMs))
      dueAt = clock.now() + Math.min(EVERY_MS, nextMs)
      return { paused: row.paused, ready: row.ready, nextMs }
    },
  }
}

interface Tended {
  readonly paused: boolean
  readonly ready: boolean
  readonly moved: number
  readonly dueMs: number
  readonly leaseMs: number
}

async function tend(store: Store, queueId: number): Promise<Tended> {
  const [row] = await query(store, store.sql.TEND, [queueId, PROMOTE_STEP])
  const moved = Number(row?.promoted ?? 0)
  return {
    paused: row?.paused === true,
    ready: row?.ready === true || moved > 0,
    moved,
    dueMs: msOf(row?.due_ms),
    leaseMs: msOf(row?.lease_ms),
  }
}

function msOf(value: unknown): number {
  return typeof value === 'number' ? Math.ceil(value) : Number.POSITIVE_INFINITY
}
