import type { QueueKeys } from './keys.ts'
import { scripts } from './script.ts'
import { run, type Store } from './store.ts'

/** Looking at all ids is work for the server, and what a worker has stays gone until its lease ends. */
const EVERY_MS = 10_000
const STEPS_MAX = 10_000

/** Finds messages whose entries somebody deleted or trimmed before a worker had them, and makes them dead letters. */
export interface Burying {
  /** @param gone how many there are, from the server's counts */
  look(gone: number): Promise<void>
}

export function openBurying(store: Store, name: string, queue: QueueKeys): Burying {
  const { clock, logger } = store
  let nextAt = Number.NEGATIVE_INFINITY
  return {
    async look(gone) {
      if (!(gone > 0) || clock.now() < nextAt) return
      nextAt = clock.now() + EVERY_MS
      let buried = 0
      let cursor = '0'
      for (let step = 0; step < STEPS_MAX; step++) {
        const found = await run(store, scripts.BURY_GONE, queue, [queue.group, cursor])
        const [next, count] = Array.isArray(found) ? found : ['0', 0]
        buried += Number(count)
        cursor = String(next)
        if (cursor === '0') break
      }
      if (buried === 0) return
      logger.error(
        `queue "${name}": ${buried} messages were gone from the stream ${queue.stream} before a worker had them; whoever deletes or trims there must stop. They are dead letters now ("body lost")`,
        { queue: name, messages: buried },
      )
    },
  }
}
