/**
 * Counted leases: at any time no more than `max` slots of a pool are held, nor more than `maxPerKey` of one key in it. A slot whose end has
 * passed is free, so a holder that died keeps none. Fences of a pool grow with every slot that is given.
 */
export interface Slots {
  /**
   * One answer for each, decided in their order and by the limits of this call. Who holds a slot gets the same again, with a new end: an
   * answer that was lost may be asked for once more.
   */
  acquire(
    pool: string,
    limits: SlotLimits,
    batch: readonly SlotRequest[],
    leaseMs: number,
  ): Promise<readonly SlotAnswer[]>
  /** False for each that is no longer this one's: its end has passed, or it was released. */
  renew(pool: string, slots: readonly HeldSlot[], leaseMs: number): Promise<readonly boolean[]>
  /** Harmless for those that are no longer this one's. */
  release(pool: string, slots: readonly HeldSlot[]): Promise<void>
  /** How many are held now, and by which keys, the `keysMax` with most slots first. */
  count(pool: string, keysMax: number): Promise<SlotCount>
}

/** 1 to 1,000,000 each. Undefined: no limit. */
export interface SlotLimits {
  readonly max: number | undefined
  readonly maxPerKey: number | undefined
}

export interface SlotRequest {
  /** A name that no other slot of the pool has; see `acquire`. */
  readonly holder: string
  /** Undefined: of the pool alone. Who asks again asks with the same. */
  readonly key: string | undefined
}

export type SlotAnswer =
  | { readonly as: 'held'; readonly fence: bigint }
  /** `key`: all of its key are held, whether the pool has room or not. */
  | { readonly as: 'full'; readonly of: 'pool' | 'key' }

export interface HeldSlot {
  readonly holder: string
  readonly fence: bigint
}

export interface SlotCount {
  readonly held: number
  readonly keys: readonly { readonly key: string; readonly held: number }[]
}
