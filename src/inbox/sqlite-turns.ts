import type { Clock } from '../model/clock.ts'

/**
 * Transactions of SQLite happen in one go, and a handler goes on in microtasks: all of a worker's, one after the other, would hold up
 * timers, sockets and the renewal of leases (512 effects of 30 ms, 256 at once, made 200 of them come again as crashed). So when
 * those of one turn of the event loop have taken this long, the others wait for the next.
 */
const SPAN_MS = 10

/** Whether a transaction may begin now, or in a later turn of the event loop: ask again then. */
export type MayBegin = () => boolean

export function sqliteTurns(clock: Clock): MayBegin {
  let beganAt: number | undefined
  return () => {
    const now = clock.now()
    if (beganAt !== undefined) return now - beganAt < SPAN_MS
    beganAt = now
    setImmediate(() => {
      beganAt = undefined
    })
    return true
  }
}
