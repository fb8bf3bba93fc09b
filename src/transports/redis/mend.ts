import type { Script } from '../../redis/call.ts'
import type { QueueKeys } from './keys.ts'
import { scripts } from './script.ts'
import { run, type Store } from './store.ts'

/** Looking at all ids is work for the server, and what a worker has stays gone until its lease ends. */
const EVERY_MS = 10_000
const STEPS_MAX = 10_000
/** 10,000 ordering keys a look; the next one goes on where it ended. */
const KEY_STEPS_MAX = 20

/**
 * Finds what other programs (or older versions) did to a queue: messages whose entries were deleted or trimmed before a worker had
 * them become dead letters, and ordering keys whose head is gone go on.
 */
export interface Mending {
  /**
   * @param gone how many messages have no entry, from the server's counts
   * @param behind how many wait behind others of their ordering keys
   */
  look(gone: number, behind: number): Promise<void>
  /** The next look is due. */
  hurry(): void
}

export function openMending(store: Store, name: string, queue: QueueKeys): Mending {
  const { clock, logger } = store
  let nextAt = Number.NEGATIVE_INFINITY
  let keyCursor = '0'

  const step = async (
    script: Script,
    args: readonly string[],
  ): Promise<readonly [cursor: string, count: number]> => {
    const found = await run(store, script, queue, args)
    const [next, count] = Array.isArray(found) ? found : ['0', 0]
    return [String(next), Number(count)]
  }
  const buryGone = async (): Promise<void> => {
    let buried = 0
    let cursor = '0'
    for (let n = 0; n < STEPS_MAX; n++) {
      const [next, count] = await step(scripts.BURY_GONE, [queue.group, cursor])
      buried += count
      cursor = next
      if (cursor === '0') break
    }
    if (buried === 0) return
    logger.error(
      `queue "${name}": ${buried} messages were gone from the stream ${queue.stream} before a worker had them; whoever deletes or trims there must stop. They are dead letters now ("body lost")`,
      { queue: name, messages: buried },
    )
  }
  const moveKeys = async (): Promise<void> => {
    let moved = 0
    for (let n = 0; n < KEY_STEPS_MAX; n++) {
      const [next, count] = await step(scripts.MEND, [keyCursor])
      moved += count
      keyCursor = next
      if (keyCursor === '0') break
    }
    if (moved === 0) return
    store.bell.ring(name)
    logger.error(
      `queue "${name}": ${moved} ordering keys stood still, as another program or an older version of millrace had removed the message that they waited for; they go on now`,
      { queue: name, keys: moved },
    )
  }
  return {
    async look(gone, behind) {
      if (!(gone > 0 || behind > 0) || clock.now() < nextAt) return
      nextAt = clock.now() + EVERY_MS
      if (gone > 0) await buryGone()
      // Also where nothing waits any more: what is sent later would, behind a head that is gone.
      await moveKeys()
    },
    hurry() {
      nextAt = Number.NEGATIVE_INFINITY
    },
  }
}
