import type { Msg } from '@nats-io/transport-node'
import { pause } from '../../model/clock.ts'
import type { Ends } from '../../transport/ends.ts'
import {
  type Arriving,
  arrived,
  giveBackLate,
  needConsumer,
  RETRY_MS,
  WAIT_MAX_MS,
} from './arriving.ts'
import type { Held } from './held.ts'
import { isPassing, pull } from './pull.ts'

/** How a subscription gets its messages. */
export interface Pulls {
  /** What is there or comes first, at most `max`; empty when `waitMs` is over. May be empty before that. */
  next(max: number, waitMs: number, ends: Ends): Promise<readonly Held[]>
  /** Asks for no more; answers what came and was not taken. */
  stop(): readonly Held[]
}

/** Of a queue with one consumer: one request for each receive. */
export function singlePull(parts: Arriving): Pulls {
  const { store, ackWaitMs, sources } = parts
  const [source] = sources
  return {
    async next(batch, leftMs, ends) {
      const askedAt = store.clock.now()
      const waitMs = Math.min(leftMs, WAIT_MAX_MS, ackWaitMs / 2)
      const late = (msg: Msg): void => void giveBackLate(parts, source, msg, askedAt)
      try {
        const messages = await pull(store, { source, batch, waitMs, ends, late })
        return await Promise.all(messages.map((msg) => arrived(parts, source, msg, askedAt)))
      } catch (error) {
        if (!isPassing(error)) throw error
        await store.tracked(needConsumer(parts, source))
        await pause(store.clock, Math.min(RETRY_MS, waitMs), ends.signal())
        return []
      }
    },
    stop: () => [],
  }
}
