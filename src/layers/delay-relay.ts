import { type Clock, pause } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import type { Store } from '../store/store.ts'
import type { Transport } from '../transport/transport.ts'
import { sendInParts } from './in-parts.ts'
import { asCopied } from './past.ts'

/** Moves due messages of one queue from the store to the broker. */
export interface DelayRelay {
  /** Something will be due in `ms`. */
  look(ms: number): void
  /** Resolves once the relay has stopped, after `closed` fired. */
  readonly ended: Promise<void>
}

export interface DelayRelayOptions {
  readonly inner: Transport
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly queue: string
  readonly closed: AbortSignal
}

/** Bodies of all are in memory at once. */
const TAKE_MAX = 100
/** A taker that died keeps its messages from others for this long. */
const TAKE_LEASE_MS = 30_000
/** How late a message can be that another process put while we slept. */
const LOOK_MS = 500
/** After a failure, and while others hold what is due. */
const AWAY_MS = 1_000

export function startDelayRelay(options: DelayRelayOptions): DelayRelay {
  const { store, clock, logger, queue, closed } = options
  let wake = new AbortController()
  let cancel = (): void => undefined

  const turn = async (): Promise<number> => {
    const moved = await moveDue(options)
    if (moved > 0) return 0
    const dueMs = await store.delayed.nextDueMs(queue)
    return dueMs === 0 ? AWAY_MS : Math.min(dueMs ?? LOOK_MS, LOOK_MS)
  }

  const run = async (): Promise<void> => {
    while (!closed.aborted) {
      wake = new AbortController()
      const idleMs = await turn().catch((cause: unknown) => {
        if (!closed.aborted) {
          logger.warn(
            `queue "${queue}": delayed messages wait longer, the store or the broker is away`,
            { queue, cause },
          )
        }
        return AWAY_MS
      })
      if (idleMs > 0) await pause(clock, idleMs, AbortSignal.any([closed, wake.signal]))
    }
    cancel()
  }

  return {
    look: (ms) => {
      if (ms > LOOK_MS || closed.aborted) return
      cancel()
      cancel = clock.after(ms, () => wake.abort())
    },
    ended: run(),
  }
}

/** Answers how many were moved. What could not be sent comes back when its lease in the store ends. */
async function moveDue({ inner, store, queue, closed }: DelayRelayOptions): Promise<number> {
  const { sendBatch } = inner.traits.limits
  const max = Math.min(sendBatch, store.traits.limits.batch, TAKE_MAX)
  const due = await store.delayed.take(queue, { max, leaseMs: TAKE_LEASE_MS })
  if (due.length === 0) return 0
  const sent = await sendInParts(
    inner,
    queue,
    due.map(({ envelope }) => asCopied(envelope)),
    closed,
  )
  const gone = due.filter((_, i) => sent[i]?.ok)
  if (gone.length > 0) await store.delayed.sent(queue, gone)
  return gone.length
}
