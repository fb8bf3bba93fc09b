import type { Cancel, Clock } from './clock.ts'
import type { Settled } from './delivery.ts'

/**
 * Renews the leases of everything in hand, every third of a lease, in one call for all. A renewal that says `lost`, or
 * that did not get through for a whole lease, tells the holder that it is no longer its own.
 */
export interface LeaseKeeper<One extends object> {
  /** Again for one that is held already: only who is told changes. @param now epoch ms */
  hold(one: One, onLost: () => void, now: number): void
  /** Idempotent; what was let go is neither renewed nor reported lost. */
  letGo(one: One): void
  /**
   * By our clock its lease has ended since the last renewal that got through. Asked before a handler begins and before something
   * commits that no backend can fence: a process that was stopped runs on before the timer that would have told it.
   * @param since epoch ms when one that is not held came; without it such a one is never over
   */
  isOver(one: One, since?: number): boolean
  /** Epoch ms since when renewals fail; undefined while they get through. */
  readonly failingSince: number | undefined
  close(): void
}

export interface LeaseKeeperOptions<One extends object> {
  /** Undefined: there are no leases. */
  readonly renew:
    | ((batch: readonly One[], leaseMs: number) => Promise<readonly Settled[]>)
    | undefined
  readonly clock: Clock
  readonly leaseMs: number
  readonly onError: (error: unknown) => void
}

/** A session or an assignment has no end of its own; `claim.lost` tells. */
const noLeases: LeaseKeeper<object> = {
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

export function leaseKeeper<One extends object>(
  options: LeaseKeeperOptions<One>,
): LeaseKeeper<One> {
  const { renew, clock, leaseMs } = options
  if (renew === undefined) return noLeases
  const held = new Map<One, Held>()
  let failingSince: number | undefined
  let renewingSince: number | undefined
  let closed = false
  let cancel: Cancel | undefined

  const lose = (one: One): void => {
    const entry = held.get(one)
    held.delete(one)
    entry?.onLost()
  }

  const note = (batch: readonly One[], results: readonly Settled[], startedAt: number): void => {
    for (const [i, one] of batch.entries()) {
      const entry = held.get(one)
      const result = results[i]
      if (result?.ok === true && entry !== undefined) entry.renewedAt = startedAt
      else if (result?.ok === false && result.fault.code === 'lost') lose(one)
    }
  }

  const renewAll = async (batch: readonly One[]): Promise<void> => {
    const startedAt = clock.now()
    // One at a time; but one that hangs for a whole lease must not be the last one.
    const busy = renewingSince !== undefined && startedAt - renewingSince < leaseMs
    if (batch.length === 0 || busy) return
    renewingSince = startedAt
    try {
      note(batch, await renew(batch, leaseMs), startedAt)
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
    for (const [one, entry] of held) {
      if (now - entry.renewedAt >= leaseMs) lose(one)
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
    hold: (one, onLost, now) => {
      const entry = held.get(one)
      if (entry === undefined) held.set(one, { renewedAt: now, onLost })
      else entry.onLost = onLost
      if (cancel === undefined) arm()
    },
    letGo: (one) => void held.delete(one),
    isOver: (one, since) => {
      const from = held.get(one)?.renewedAt ?? since
      return from !== undefined && clock.now() - from >= leaseMs
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
