import type { Bell } from '../../transport/bell.ts'
import { sqsFault } from './faults.ts'
import type { Fetcher } from './fetch.ts'
import { type Held, handOut } from './held.ts'
import { giveBack } from './leases.ts'
import { CLOSE_TIMEOUT_MS, type Store } from './store.ts'
import type { Tray } from './tray.ts'

/**
 * The long polls of a subscription. None is aborted by a receive that ends: SQS would not notice, and hand the next message to
 * nobody. It runs on, is joined by the next receive, and what arrives when nobody asks is given back at once.
 */
export interface Polls {
  /** Resolves when messages have come to the tray, or none. Waits with the poll that is under way, if there is one. */
  next(want: number, waitS: number): Promise<void>
  close(): void
}

export interface PollsOptions {
  readonly store: Store
  readonly queue: string
  readonly url: string
  readonly leaseMs: number
  readonly fetcher: Fetcher
  readonly tray: Tray
  readonly bell: Bell<0>
  readonly linger: (running: Promise<unknown>) => void
}

export function openPolls(options: PollsOptions): Polls {
  const { store, queue, url, leaseMs, fetcher, tray, bell, linger } = options
  let closed = false
  let long: Promise<void> | undefined

  const arrived = async (all: readonly Held[]): Promise<void> => {
    if (all.length === 0) return
    if (closed || tray.askers === 0) {
      await giveBack(store, url, all, CLOSE_TIMEOUT_MS)
      return
    }
    tray.put(all)
    bell.ring(0)
  }

  const poll = async (want: number, waitS: number): Promise<void> => {
    try {
      const arrivals = await fetcher.fetch(want, waitS)
      store.overLimit.delete(queue)
      await arrived(
        arrivals.map(({ message, since }) => handOut(message, { since, leaseMs, sns: store.sns })),
      )
    } catch (error) {
      if (!isOverLimit(error)) throw error
      // Not an error but a full hand: acks make room.
      store.overLimit.add(queue)
    }
  }

  return {
    next(want, waitS) {
      if (waitS === 0) return poll(want, 0)
      if (long !== undefined) return long
      const running = poll(want, waitS).finally(() => {
        long = undefined
      })
      long = running
      // Whoever waits for it hears of its error; when nobody does, the next receive will.
      running.catch(() => {})
      linger(running)
      return running
    },
    close() {
      closed = true
    },
  }
}

function isOverLimit(error: unknown): boolean {
  const { cause } = sqsFault(error)
  return cause instanceof Error && cause.name.endsWith('OverLimit')
}
