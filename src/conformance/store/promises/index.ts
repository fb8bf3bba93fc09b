import type { StoreFamily } from '../scope.ts'
import { buckets } from './buckets.ts'
import { close } from './close.ts'
import { counters } from './counters.ts'
import { delayed } from './delayed.ts'
import { diagnose } from './diagnose.ts'
import { journal } from './journal.ts'
import { keys } from './keys.ts'
import { leases } from './leases.ts'
import { prune } from './prune.ts'
import { shelf } from './shelf.ts'
import { slots } from './slots.ts'
import { states } from './states.ts'

/** All promises of a store, in the order of docs/guarantees.md. */
export const storeFamilies: readonly StoreFamily[] = [
  keys,
  delayed,
  shelf,
  journal,
  leases,
  slots,
  buckets,
  counters,
  states,
  prune,
  diagnose,
  close,
]
