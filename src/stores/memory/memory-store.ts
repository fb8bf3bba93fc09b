import type { Clock } from '../../model/clock.ts'
import type { Fault } from '../../model/fault.ts'
import type { JournalEntry } from '../../store/journal.ts'
import type { Lease } from '../../store/leases.ts'
import { processSlots } from '../../store/process-slots.ts'
import type { SlotTable } from '../../store/slot-table.ts'
import type { StoreConnector } from '../../store/store.ts'
import type { VersionedState } from '../../store/swapped-states.ts'
import type { BucketLevel } from '../bucket-level.ts'
import { guardedStore, type StoreParts } from '../guarded-store.ts'
import type { HeldKey } from '../reservation.ts'
import { memoryDelayed, type WaitingByQueue } from './delayed.ts'
import { type EndingRows, endingRows } from './ending-rows.ts'
import { memoryJournal } from './journal.ts'
import { memoryKeys } from './keys.ts'
import { memoryLeases } from './leases.ts'
import { memoryBuckets, memoryCounters } from './numbers.ts'
import { memoryShelf, type ShelfState } from './shelf.ts'
import { memoryStates } from './states.ts'

/**
 * A store in the memory of this process, gone with it: for tests and for trying things out. Connecting the same
 * connector again reaches the same contents.
 *
 * @example
 * const app = await createMillrace({ transport, store: memoryStore(), queues })
 */
export function memoryStore(): StoreConnector {
  const contents = newContents()
  return {
    name: 'memory',
    connect: async ({ clock, signal }) => {
      signal.throwIfAborted()
      return guardedStore({
        name: 'memory',
        clock: 'caller',
        durability: 'process',
        parts: partsOf(contents, clock),
        diagnose,
        end: async () => {},
      })
    },
  }
}

/** What all connections of one connector share. */
interface Contents {
  readonly keys: EndingRows<HeldKey>
  readonly delayed: WaitingByQueue
  readonly shelf: ShelfState
  readonly journal: EndingRows<JournalEntry>
  readonly leases: EndingRows<Lease>
  readonly pools: Map<string, SlotTable>
  readonly nextFence: () => bigint
  readonly buckets: EndingRows<BucketLevel>
  readonly counters: EndingRows<number>
  readonly states: Map<string, VersionedState>
  readonly nextSeq: () => number
}

function newContents(): Contents {
  let fence = 0n
  let seq = 0
  return {
    keys: endingRows(),
    delayed: new Map(),
    shelf: { queues: new Map(), audit: [] },
    journal: endingRows(),
    leases: endingRows(),
    pools: new Map(),
    nextFence: () => {
      fence += 1n
      return fence
    },
    buckets: endingRows(),
    counters: endingRows(),
    states: new Map(),
    nextSeq: () => {
      seq += 1
      return seq
    },
  }
}

function partsOf(contents: Contents, clock: Clock): StoreParts {
  const { keys, journal, leases, buckets, counters, nextFence } = contents
  const slots = processSlots(clock, contents.pools, nextFence)
  return {
    keys: memoryKeys(keys, clock),
    delayed: memoryDelayed(contents.delayed, clock, contents.nextSeq),
    shelf: memoryShelf(contents.shelf, clock),
    journal: memoryJournal(journal, clock),
    leases: memoryLeases(leases, clock, nextFence),
    slots,
    buckets: memoryBuckets(buckets, clock),
    counters: memoryCounters(counters, clock),
    states: memoryStates(contents.states),
    async prune(max) {
      const now = clock.now()
      let pruned = 0
      for (const rows of [keys, journal, leases, buckets, counters]) {
        if (pruned < max) pruned += rows.prune(now, max - pruned)
      }
      return pruned + slots.prune(max - pruned)
    },
  }
}

/** Nothing is ever half done here: whatever was thrown, nothing was applied. */
function diagnose(cause: unknown): Fault {
  return { code: 'unknown', retryable: false, outcome: 'notApplied', cause }
}
