import { isDrained, type Lane } from './lane.ts'

/** Waits for lanes of which nothing is in hand any more. */
export interface Drains {
  /** Resolves when all that was handed out is committed, or the lane is lost. */
  of(lane: Lane): Promise<void>
  /** Something was committed, or lost. */
  look(): void
}

export function drains(): Drains {
  const waiting = new Set<() => void>()
  return {
    of: (lane) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!isDrained(lane) && !lane.claim.lost.aborted) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    look: () => {
      for (const look of [...waiting]) look()
    },
  }
}
