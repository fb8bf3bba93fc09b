import type { Cancel, Clock } from '../model/clock.ts'
import type { Delivery, Settled } from '../model/delivery.ts'
import { type LeaseKeeper, leaseKeeper } from '../model/lease-keeper.ts'
import { isGone } from '../transport/outcomes.ts'
import { untouched } from '../transport/settling.ts'
import type { InHand, LevelLine } from './level-line.ts'

/**
 * What is in hand of all levels and waits for its turn: its leases are kept while somebody receives now and then, and when nobody
 * does it goes back, because others may be free.
 */
export interface LevelsInHand {
  size(): number
  /** Keeps the leases of all that waits now. */
  keep(): void
  /** They are handed out, and kept by whoever got them. */
  letGo(some: readonly InHand[]): void
  /** Gives these back as if they had never been handed out. What cannot go back now stays in hand. */
  giveBack(some: readonly InHand[]): Promise<void>
  all(): readonly InHand[]
  /** Somebody receives; the result says that he has stopped. */
  asked(): () => void
  readonly isClosed: boolean
  close(): void
}

export interface LevelsInHandOptions {
  readonly lines: readonly LevelLine[]
  readonly clock: Clock
  readonly leaseMs: number
}

/** What nobody asks for goes back after this long. */
const UNASKED_MS = 1_000

export function levelsInHand({ lines, clock, leaseMs }: LevelsInHandOptions): LevelsInHand {
  const keeper = keeperOf(lines, clock, leaseMs)
  let askers = 0
  let cancel: Cancel | undefined
  let isClosed = false

  const all = (): readonly InHand[] => lines.flatMap(({ waiting }) => waiting)

  const giveBack = async (some: readonly InHand[]): Promise<void> => {
    const byLine = Map.groupBy(some, ({ line }) => line)
    await Promise.all(
      [...byLine].map(async ([line, own]) => {
        line.remove(own)
        for (const { delivery } of own) keeper.letGo(delivery)
        const outcomes = await line.inner
          .settle(own.map(({ delivery }) => untouched(delivery)))
          .catch(() => undefined)
        const left = own.filter((_, i) => !isGone(outcomes?.[i]))
        line.putBack(left)
        keep()
      }),
    )
  }

  const keep = (): void => {
    if (isClosed) return
    for (const one of all()) keeper.hold(one.delivery, () => one.line.remove([one]), one.since)
  }

  const giveBackUnasked = async (): Promise<void> => {
    cancel = undefined
    if (askers > 0 || isClosed) return
    await giveBack(all())
    // What could not go back is tried again.
    arm()
  }

  const arm = (): void => {
    if (cancel !== undefined || askers > 0 || isClosed || all().length === 0) return
    cancel = clock.after(UNASKED_MS, () => void giveBackUnasked())
  }

  return {
    size: () => lines.reduce((sum, { waiting }) => sum + waiting.length, 0),
    all,
    keep,
    letGo: (some) => {
      for (const { delivery } of some) keeper.letGo(delivery)
    },
    giveBack,
    get isClosed() {
      return isClosed
    },
    asked: () => {
      askers += 1
      cancel?.()
      cancel = undefined
      return () => {
        askers -= 1
        arm()
      }
    },
    close: () => {
      isClosed = true
      cancel?.()
      keeper.close()
      // The close of the subscriptions gives them back.
      for (const line of lines) line.remove(line.waiting)
    },
  }
}

function keeperOf(
  lines: readonly LevelLine[],
  clock: Clock,
  leaseMs: number,
): LeaseKeeper<Delivery> {
  const hasLeases = lines.every(({ inner }) => inner.renew !== undefined)
  const renew = async (batch: readonly Delivery[]): Promise<readonly Settled[]> => {
    const outcomes = new Map<Delivery, Settled>()
    const asked = lines.map(async ({ inner, waiting }) => {
      const here = new Set(waiting.map(({ delivery }) => delivery))
      const own = batch.filter((one) => here.has(one))
      const renewed = own.length === 0 ? [] : ((await inner.renew?.(own, leaseMs)) ?? [])
      for (const [i, one] of own.entries()) {
        const outcome = renewed[i]
        if (outcome !== undefined) outcomes.set(one, outcome)
      }
    })
    await Promise.all(asked)
    // What was handed out meanwhile is kept by others.
    return batch.map((one) => outcomes.get(one) ?? { ok: true })
  }
  return leaseKeeper({
    renew: hasLeases ? renew : undefined,
    clock,
    leaseMs,
    // What fails now is tried again soon, and what cannot be renewed is lost: nothing of it ran.
    onError: () => undefined,
  })
}
