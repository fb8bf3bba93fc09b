import type { Cancel, Clock } from '../model/clock.ts'
import type { Delivery, Settled } from '../model/delivery.ts'
import type { Subscription } from '../transport/transport.ts'

/**
 * Renews the leases of everything in hand, every third of a lease, in one call for all. A renewal that says `lost`, or
 * that did not get through for a whole lease, tells the holder that the message is no longer its own.
 */
export interface LeaseKeeper {
  /** Again for one that is held already: only who is told changes. @param now epoch ms */
  hold(delivery: Delivery, onLost: () => void, now: number): void
  /** Idempotent; what was let go is neither renewed nor reported lost. */
  letGo(delivery: Delivery): void
  /**
   * By our clock its lease has ended since the last renewal that got through. Asked before something commits that no backend
   * can fence: a process that was stopped runs on before the timer that would have told it.
   */
  isOver(delivery: Delivery): boolean
  /** Epoch ms since when renewals fail; undefined while they get through. */
  readonly failingSince: number | undefined
  close(): void
}

export interface LeaseKeeperOptions {
  readonly subscription: Subscription
  readonly clock: Clock
  readonly leaseMs: number
  readonly onError: (error: unknown) => void
}

/** A session or an assignment has no end of its own; `claim.lost` tells. */
const noLeases: LeaseKeeper = {
  hold: () => undefined,
  letGo: () => undefined,
  isOver: () => false,
  failingSince: undefined,
  close: () => undefined,
}

interface Held {
  renewedAt: number
  onLost: () => void
}

export function leaseKeeper(options: LeaseKeeperOptions): LeaseKeeper {
  const { subscription, clock, leaseMs } = options
  if (subscription.renew === undefined) return noLeases
  const held = new Map<Delivery, Held>()
  let failingSince: number | undefined
  let renewingSince: number | undefined
  let closed = false
  let cancel: Cancel | undefined

  const lose = (delivery: Delivery): void => {
    const entry = held.get(delivery)
    held.delete(delivery)
    entry?.onLost()
  }

  const note = (
    batch: readonly Delivery[],
    results: readonly Settled[],
    startedAt: number,
  ): void => {
    for (const [i, delivery] of batch.entries()) {
      const entry = held.get(delivery)
      const result = results[i]
      if (result?.ok === true && entry !== undefined) entry.renewedAt = startedAt
      else if (result?.ok === false && result.fault.code === 'lost') lose(delivery)
    }
  }

  const renewAll = async (batch: readonly Delivery[]): Promise<void> => {
    const startedAt = clock.now()
    // One at a time; but one that hangs for a whole lease must not be the last one.
    const busy = renewingSince !== undefined && startedAt - renewingSince < leaseMs
    if (batch.length === 0 || subscription.renew === undefined || busy) return
    renewingSince = startedAt
    try {
      note(batch, await subscription.renew(batch, leaseMs), startedAt)
      failingSince = undefined
    } catch (error) {
      failingSince ??= startedAt
      if (!closed) options.onError(error)
    } finally {
      if (renewingSince === startedAt) renewingSince = undefined
    }
  }

  // A tick does not wait for the renewal under way: one that hangs must not hide that the leases have run out.
  const tick = (): void => {
    const now = clock.now()
    for (const [delivery, entry] of held) {
      if (now - entry.renewedAt >= leaseMs) lose(delivery)
    }
    if (held.size === 0) failingSince = undefined
    void renewAll([...held.keys()])
    arm()
  }

  const arm = (): void => {
    const ms = failingSince === undefined ? leaseMs / 3 : leaseMs / 10
    cancel = closed || held.size === 0 ? undefined : clock.after(ms, tick)
  }

  return {
    hold: (delivery, onLost, now) => {
      const entry = held.get(delivery)
      if (entry === undefined) held.set(delivery, { renewedAt: now, onLost })
      else entry.onLost = onLost
      if (cancel === undefined) arm()
    },
    letGo: (delivery) => void held.delete(delivery),
    isOver: (delivery) => {
      const entry = held.get(delivery)
      return entry !== undefined && clock.now() - entry.renewedAt >= leaseMs
    },
    get failingSince() {
      // With nothing in hand nobody renews, and nothing is at stake.
      return held.size === 0 ? undefined : failingSince
    },
    close: () => {
      closed = true
      cancel?.()
      held.clear()
    },
  }
}
