import { closedError } from '../model/closed-error.ts'
import type { Fault } from '../model/fault.ts'
import { isRefusedCall } from '../store/refused-call.ts'
import type { Store, StoreTraits } from '../store/store.ts'
import { ownFault } from '../transport/own-errors.ts'
import { BATCH_MAX, BODY_MAX_BYTES, checkMax } from './bounds.ts'
import { guardedBuckets, guardedCounters, guardedLeases, guardedStates } from './guarded-names.ts'
import { guardedDelayed, guardedJournal, guardedKeys, guardedShelf } from './guarded-queues.ts'
import { guardedSlots } from './guarded-slots.ts'

/** What differs from backend to backend. None of it is called after the close, with an empty batch or beyond a bound. */
export type StoreParts = Pick<
  Store,
  | 'keys'
  | 'delayed'
  | 'shelf'
  | 'journal'
  | 'leases'
  | 'slots'
  | 'buckets'
  | 'counters'
  | 'states'
  | 'prune'
>

export interface GuardedStoreOptions {
  readonly name: string
  readonly clock: StoreTraits['clock']
  readonly durability: StoreTraits['durability']
  /** Default `by prune`. */
  readonly ends?: StoreTraits['ends']
  readonly parts: StoreParts
  /** Names the fault behind an error of the client. */
  readonly diagnose: (error: unknown) => Fault
  readonly problems?: () => readonly string[]
  /** Called once. */
  readonly end: () => Promise<void>
}

/** Throws when the store is closed. */
export type Open = () => void

/** A store that holds what `Store` says of bounds and of its end, whatever is behind it. */
export function guardedStore(options: GuardedStoreOptions): Store {
  const { parts, clock, durability, ends = 'by prune' } = options
  let ending: Promise<void> | undefined
  const open: Open = () => {
    if (ending !== undefined) throw closedError('the store')
  }
  return {
    name: options.name,
    traits: { clock, durability, ends, limits: { bodyBytes: BODY_MAX_BYTES, batch: BATCH_MAX } },
    keys: guardedKeys(parts.keys, open),
    delayed: guardedDelayed(parts.delayed, open),
    shelf: guardedShelf(parts.shelf, open),
    journal: guardedJournal(parts.journal, open),
    leases: guardedLeases(parts.leases, open),
    slots: guardedSlots(parts.slots, open),
    buckets: guardedBuckets(parts.buckets, open),
    counters: guardedCounters(parts.counters, open),
    states: guardedStates(parts.states, open),
    async prune(max) {
      open()
      checkMax('max', max)
      return await parts.prune(max)
    },
    diagnose: (error) => ownFault(error) ?? invalidCall(error) ?? options.diagnose(error),
    ...(options.problems === undefined ? {} : { problems: options.problems }),
    close() {
      ending ??= options.end()
      return ending
    },
  }
}

function invalidCall(error: unknown): Fault | undefined {
  if (!isRefusedCall(error)) return undefined
  return { code: 'invalid', retryable: false, outcome: 'notApplied', cause: error }
}
