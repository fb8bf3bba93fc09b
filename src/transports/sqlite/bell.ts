import type { Cancel, Clock } from '../../model/clock.ts'
import type { SqliteHandle } from '../../sql/executor.ts'

/** Wakes the receives that wait on one database: at once within this process, by polling for other processes. */
export interface Bell {
  /** Grows with each ring; read it before looking at the tables. */
  readonly rings: number
  /** There may be something new for this queue (all queues when absent), on every connection of this process. */
  ring(queueId?: number): void
  /** Resolves on a ring after `since`, after `ms`, or on abort. */
  wait(queueId: number, since: number, ms: number, signal: AbortSignal): Promise<void>
  close(): void
}

export interface BellOptions {
  readonly identity: string | SqliteHandle
  readonly clock: Clock
  readonly pollMs: number
  /** True when another connection may have written since the last call. */
  readonly changed: () => boolean
}

interface Waiter {
  readonly queueId: number
  readonly wake: () => void
}

interface Listener {
  hear(queueId: number | undefined): void
}

const listeners = new Map<string | SqliteHandle, Set<Listener>>()

export function bell({ identity, clock, pollMs, changed }: BellOptions): Bell {
  const waiters = new Set<Waiter>()
  let rings = 0
  let cancelPoll: Cancel | undefined

  const listener: Listener = {
    hear(queueId) {
      rings += 1
      for (const waiter of [...waiters]) {
        if (queueId === undefined || waiter.queueId === queueId) waiter.wake()
      }
    },
  }
  const neighbours = listeners.get(identity) ?? new Set()
  listeners.set(identity, neighbours.add(listener))

  // Polls only while somebody waits: an idle process without workers costs nothing.
  const poll = (): void => {
    cancelPoll = undefined
    if (waiters.size === 0) return
    if (changed()) listener.hear(undefined)
    arm()
  }
  const arm = (): void => {
    if (waiters.size > 0) cancelPoll ??= clock.after(pollMs, poll)
  }

  return {
    get rings() {
      return rings
    },
    ring(queueId) {
      for (const neighbour of neighbours) neighbour.hear(queueId)
    },
    wait(queueId, since, ms, signal) {
      if (rings !== since || signal.aborted || ms <= 0) return Promise.resolve()
      return new Promise((resolve) => {
        const wake = (): void => {
          waiters.delete(waiter)
          cancel()
          signal.removeEventListener('abort', wake)
          resolve()
        }
        const waiter: Waiter = { queueId, wake }
        const cancel = clock.after(ms, wake)
        signal.addEventListener('abort', wake, { once: true })
        waiters.add(waiter)
        arm()
      })
    },
    close() {
      neighbours.delete(listener)
      if (neighbours.size === 0) listeners.delete(identity)
      cancelPoll?.()
      for (const waiter of [...waiters]) waiter.wake()
    },
  }
}
