import type { QueueNames } from './names.ts'
import type { Store } from './store.ts'

/** Looks whether a queue that gives nothing stands still because too many of its messages are out. */
export interface Fullness {
  /** Asks the server, at most once a minute. Never rejects. */
  look(): void
}

const EVERY_MS = 60_000

/**
 * Beyond `max_ack_pending` the server hands out nothing new and says nothing. Messages that wait after a release count too,
 * so a broken receiver can fill it.
 */
export function openFullness(store: Store, names: QueueNames): Fullness {
  const { clock, logger, stuck } = store
  let lookedAt = Number.NEGATIVE_INFINITY
  const ask = async (): Promise<void> => {
    const { consumers } = store.client.manager
    const info = await consumers.info(names.stream, names.consumer)
    const limit = info.config.max_ack_pending ?? -1
    if (limit <= 0 || info.num_ack_pending < limit) {
      stuck.delete(names.queue)
      return
    }
    const text =
      `nats: queue "${names.queue}" hands out nothing new, because ${info.num_ack_pending} messages are in flight or wait ` +
      `after a release, as many as max_ack_pending of consumer ${names.consumer} allows; raise it`
    if (!stuck.has(names.queue)) logger.warn(text, { queue: names.queue })
    stuck.set(names.queue, text)
  }
  return {
    look() {
      if (clock.now() - lookedAt < EVERY_MS) return
      lookedAt = clock.now()
      ask().catch(() => {})
    },
  }
}
