import type { Cancel, Clock } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Subscription } from '../transport/transport.ts'

/**
 * Suspects that must run alone and wait for their turn, here and not with the broker: each return would count there. Beside them
 * what was given back while the store was away. So many at most as one consumer has in hand, because nothing more is asked for
 * while one of them can be handed out.
 */
export interface WaitingSuspects {
  readonly size: number
  add(deliveries: readonly Delivery[]): void
  /** It is the next one. */
  putBack(delivery: Delivery): void
  has(delivery: Delivery): boolean
  /** The next one whose lane is not paused. */
  take(): Delivery | undefined
  pause(lane: string, paused: boolean): void
  /** Somebody receives; the result says that he has stopped. */
  asked(): () => void
  close(): void
}

export interface WaitingSuspectsOptions {
  readonly renew: Subscription['renew']
  /** To the broker, for others. */
  readonly giveBack: (deliveries: readonly Delivery[]) => Promise<void>
  readonly clock: Clock
  readonly leaseMs: number
  /** One of ours is in hand, so the others wait for it. */
  readonly isBusy: () => boolean
}

export function waitingSuspects(options: WaitingSuspectsOptions): WaitingSuspects {
  const { renew, giveBack, clock, leaseMs, isBusy } = options
  let waiting: readonly Delivery[] = []
  const paused = new Set<string>()
  let askers = 0
  let askedAt = clock.now()
  let cancel: Cancel | undefined
  let isClosed = false

  const tend = async (): Promise<void> => {
    if (askers === 0 && !isBusy() && clock.now() - askedAt >= leaseMs) {
      const unasked = waiting
      waiting = []
      try {
        return await giveBack(unasked)
      } catch {
        waiting = [...unasked, ...waiting]
      }
    }
    await renew?.(waiting, leaseMs)
  }
  const arm = (): void => {
    waiting = waiting.filter(isOurs)
    if (cancel !== undefined || isClosed || waiting.length === 0) return
    cancel = clock.after(leaseMs / 3, () => {
      // What fails now is tried again; what is lost meanwhile says so.
      const again = (): void => {
        cancel = undefined
        arm()
      }
      tend().then(again, again)
    })
  }
  return {
    get size() {
      return waiting.length
    },
    add: (deliveries) => {
      waiting = [...waiting, ...deliveries]
      arm()
    },
    putBack: (delivery) => {
      waiting = [delivery, ...waiting]
      arm()
    },
    has: ({ claim, position }) =>
      waiting.some((one) => one.claim === claim && one.position === position),
    take: () => {
      if (waiting.length === 0) return undefined
      waiting = waiting.filter(isOurs)
      const next = waiting.find(({ lane }) => lane === undefined || !paused.has(lane))
      waiting = waiting.filter((one) => one !== next)
      return next
    },
    pause: (lane, isPaused) => void (isPaused ? paused.add(lane) : paused.delete(lane)),
    asked: () => {
      askers += 1
      return () => {
        askers -= 1
        askedAt = clock.now()
      }
    },
    close: () => {
      isClosed = true
      cancel?.()
    },
  }
}

function isOurs({ claim }: Delivery): boolean {
  return !claim.lost.aborted
}
