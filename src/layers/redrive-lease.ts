import { type Clock, pause } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import type { Store } from '../store/store.ts'

/** Longer than a redrive takes whose broker answers; one that died keeps others out for this long. */
const LEASE_MS = 30_000
const LOOK_MS = 50

export interface RedriveLeaseOptions {
  readonly store: Store
  readonly clock: Clock
  /** Of this call alone. */
  readonly holder: string
  /** Ends the wait: it rejects with the signal's reason. */
  readonly closing: AbortSignal
}

/** One redrive of a queue at a time, in all processes: two at once would send the same letters twice. */
export async function withRedriveLease<T>(
  queue: string,
  { store, clock, holder, closing }: RedriveLeaseOptions,
  run: () => Promise<T>,
): Promise<T> {
  const name = `redrive:${queue}`
  const giveUpAt = clock.now() + LEASE_MS
  for (;;) {
    closing.throwIfAborted()
    const lease = await store.leases.acquire(name, holder, LEASE_MS)
    if (lease !== undefined) {
      return await run().finally(() => store.leases.release(name, lease).catch(() => undefined))
    }
    if (clock.now() >= giveUpAt) {
      throw new MillraceError(
        'MILLRACE_UNAVAILABLE',
        `queue "${queue}": another redrive has been running for ${LEASE_MS / 1_000} s; nothing was moved, try again`,
        { retryable: true, fields: { queue } },
      )
    }
    await pause(clock, LOOK_MS, closing)
  }
}
