/** Adds to what is told. */
export type Tally = (more: number) => void

/** A person who looks at the last minute of a log sees it, and one line each would drown all others. */
const AGAIN_MS = 60_000

/**
 * What may happen with every message: told at once, and then each minute how often it happened since. What is untold when `ended`
 * fires is told then, and what comes after it at once: nobody would ask later.
 */
export function tally(now: () => number, tell: (count: number) => void, ended: AbortSignal): Tally {
  let since = 0
  let toldAt = Number.NEGATIVE_INFINITY
  const tellAll = (): void => {
    if (since === 0) return
    const count = since
    since = 0
    toldAt = now()
    tell(count)
  }
  ended.addEventListener('abort', tellAll, { once: true })
  return (more) => {
    since += more
    if (ended.aborted || now() - toldAt >= AGAIN_MS) tellAll()
  }
}
