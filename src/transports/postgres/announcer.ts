import type { Clock } from '../../model/clock.ts'
import type { PgPool } from '../../sql/pg-pool.ts'
import { NOTIFY } from './statements.ts'

/**
 * Tells other processes of new messages. NOTIFY takes one lock for the whole server at commit, so it never rides on a
 * statement that stores, and many sends share one.
 */
export interface Announcer {
  announce(queueId: number): void
  close(): void
}

/** The first announcement goes out at once; those after it wait this long for company. */
const GATHER_MS = 10

export function openAnnouncer(pool: PgPool, channel: string, clock: Clock): Announcer {
  const waiting = new Set<number>()
  let busy = false
  let closed = false

  const flush = (): void => {
    busy = waiting.size > 0 && !closed
    if (!busy) return
    const payload = [...waiting].join(',')
    waiting.clear()
    // One that fails costs others the time until they poll.
    const sent = pool.query(NOTIFY, [channel, payload]).then(
      () => {},
      () => {},
    )
    void sent.then(() => clock.after(GATHER_MS, flush))
  }
  return {
    announce(queueId) {
      waiting.add(queueId)
      if (!busy) flush()
    },
    close() {
      closed = true
    },
  }
}
