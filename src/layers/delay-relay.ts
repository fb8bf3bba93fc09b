import { type Clock, pause } from '../model/clock.ts'
import type { Fault } from '../model/fault.ts'
import type { Logger } from '../model/logger.ts'
import type { Store } from '../store/store.ts'
import type { Transport } from '../transport/transport.ts'
import { sendInParts } from './in-parts.ts'
import { outage } from './outage.ts'
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

  const trouble = outage({ clock, logger, queue, what: 'delayed messages wait longer' })

  const turn = async (): Promise<number> => {
    const { moved, failure } = await moveDue(options)
    if (failure !== undefined) trouble.failed(failure.cause)
    else trouble.worked()
    if (moved > 0) return 0
    const dueMs = await store.delayed.nextDueMs(queue)
    return dueMs === 0 ? AWAY_MS : Math.min(dueMs ?? LOOK_MS, LOOK_MS)
  }

  const run = async (): Promise<void> => {
    while (!closed.aborted) {
      wake = new AbortController()
      const idleMs = await turn().catch((cause: unknown) => {
        if (!closed.aborted) trouble.failed(cause)
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

interface Moved {
  readonly moved: number
  /** Of one that could not be sent; it comes back when its lease in the store ends. */
  readonly failure: Fault | undefined
}

async function moveDue({ inner, store, queue, closed }: DelayRelayOptions): Promise<Moved> {
  const { sendBatch } = inner.traits.limits
  const max = Math.min(sendBatch, store.traits.limits.batch, TAKE_MAX)
  const due = await store.delayed.take(queue, { max, leaseMs: TAKE_LEASE_MS })
  if (due.length === 0) return { moved: 0, failure: undefined }
  const sent = await sendInParts(
    inner,
    queue,
    due.map(({ envelope }) => asCopied(envelope)),
    closed,
  )
  const gone = due.filter((_, i) => sent[i]?.ok)
  if (gone.length > 0) await store.delayed.sent(queue, gone)
  const failed = sent.find((one) => !one.ok)
  return { moved: gone.length, failure: failed?.ok === false ? failed.fault : undefined }
}
