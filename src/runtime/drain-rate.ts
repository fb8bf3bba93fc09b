/** Messages per second that left the queue lately, and from it when a full queue has room again. */
export interface DrainRate {
  note(messages: number): void
  /** When a sender that met a full queue should come back, in ms. */
  retryAfterMs(maxDepth: number): number
}

const SLOTS = 10
const RETRY_MIN_MS = 1_000
const RETRY_MAX_MS = 60_000
/** With no drain at all: a middle way between hammering and sleeping through the recovery. */
const RETRY_WITHOUT_DRAIN_MS = 30_000

export function drainRate(now: () => number): DrainRate {
  const counts = new Array<number>(SLOTS).fill(0)
  let second = Math.floor(now() / 1000)

  const roll = (): void => {
    const current = Math.floor(now() / 1000)
    for (let s = second + 1; s <= Math.min(current, second + SLOTS); s++) counts[s % SLOTS] = 0
    second = Math.max(second, current)
  }

  return {
    note: (messages) => {
      roll()
      counts[second % SLOTS] = (counts[second % SLOTS] ?? 0) + messages
    },
    retryAfterMs: (maxDepth) => {
      roll()
      const perSecond = counts.reduce((sum, n) => sum + n, 0) / SLOTS
      if (perSecond === 0) return RETRY_WITHOUT_DRAIN_MS
      const room = Math.max(1, maxDepth / 100)
      return Math.round(Math.min(RETRY_MAX_MS, Math.max(RETRY_MIN_MS, (1000 * room) / perSecond)))
    },
  }
}
