import type { Store } from '../../store/store.ts'
import type { MovableTime, Outage } from '../harness.ts'

/** What the author of a store provides, so that the kit can run on it. */
export interface StoreHarness {
  /** How results name the backend, with its version: `postgres 18`. */
  readonly name: string
  /** A new, independent connection to the same store; the kit closes it. */
  connect(): Promise<Store>
  /** Present when the store's time can be moved; absent: the kit really waits. */
  readonly time?: MovableTime
  /** Multiplies every deadline of the kit: 1 for a local backend. */
  readonly slow: number
  /** The shortest time that the kit lets something last, in ms; 500 for a local server. */
  readonly leaseMs: number
  /** Takes the backend away and brings it back. */
  readonly outage?: Outage
  /** Frees everything. The kit never calls it: give it to the `after` of your test runner. */
  dispose(): Promise<void>
}
