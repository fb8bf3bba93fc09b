/** Adds to what is told. */
export type Tally = (more: number) => void

/** A person who looks at the last minute of a log sees it, and one line each would drown all others. */
const AGAIN_MS = 60_000

/** What may happen with every message: told at once, and then each minute how often it happened since. */
export function tally(now: () => number, tell: (count: number) => void): Tally {
  let since = 0
  let toldAt = Number.NEGATIVE_INFINITY
  return (more) => {
    since += more
    if (now() - toldAt < AGAIN_MS) return
    const count = since
    since = 0
    toldAt = now()
    tell(count)
  }
}
