import type { Sent } from '../../model/delivery.ts'
import { MillraceError } from '../../model/errors.ts'
import type { Fault } from '../../model/fault.ts'
import type { Broker } from './broker.ts'
import { headerCarrier } from './header-carrier.ts'
import { withinLimit } from './limit.ts'
import { failed, goneFault, type Outlet, openOutlet, type Publication } from './outlet.ts'

/** Publishes with confirms and `mandatory`: stored means that the broker said so and that it knew where to. */
export interface Publisher {
  /** One outcome per item; rejects when the broker is away before anything was written. */
  publish(batch: readonly Publication[], signal: AbortSignal): Promise<readonly Sent[]>
}

/** What waits for its confirm at once; beyond it the broker is too slow for us. */
const OUTSTANDING_MAX = 20_000
/**
 * A channel that a message was refused on is replaced, no sooner than so long after it was opened. One that was opened while a quorum
 * queue had just lost its leader keeps asking the node that is gone, and refuses all for that queue until it is back (seen on 3.10:
 * 30 s and more, with a new leader elected at once). A queue that is full refuses, too; then this costs a channel a second.
 */
const REPLACED_AFTER_MS = 1_000

export function openPublisher(broker: Broker): Publisher {
  const { publishing, options, clock } = broker
  const outlets = new Set<Outlet>()
  const written = headerCarrier()
  let outstanding = 0
  let opening: Promise<Outlet> | undefined
  let current: Outlet | undefined

  publishing.onBlocked((why) => {
    for (const outlet of outlets) outlet.settleAll(blockedFault('unknown', why))
  })

  const openNext = async (): Promise<Outlet> => {
    const onClosed = (closed: Outlet): void => {
      outlets.delete(closed)
      if (current === closed) opening = current = undefined
    }
    const opened = await openOutlet({ broker, written, onClosed })
    outlets.add(opened)
    current = opened
    return opened
  }

  const outlet = (): Promise<Outlet> => {
    const isSpent = current?.hasRefused && clock.now() - current.openedAt >= REPLACED_AFTER_MS
    if (isSpent) {
      current?.retire()
      opening = current = undefined
    }
    opening ??= openNext().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }

  return {
    async publish(batch, signal) {
      signal.throwIfAborted()
      if (batch.length === 0) return []
      const blocked = publishing.blocked()
      if (blocked !== undefined || outstanding + batch.length > OUTSTANDING_MAX) {
        return batch.map(() => failed(blockedFault('notApplied', blocked)))
      }
      const to = await withinLimit(broker, 'opening a channel', outlet(), signal)
      const call = to.publish(batch)
      outstanding += batch.length
      const giveUp = (): void => call.settleRest(unansweredFault(options.timeoutMs))
      const cancel = clock.after(options.timeoutMs, () => {
        giveUp()
        publishing.drop(`no confirm within ${options.timeoutMs} ms`)
      })
      signal.addEventListener('abort', giveUp, { once: true })
      try {
        return await call.settled
      } finally {
        cancel()
        signal.removeEventListener('abort', giveUp)
        call.end()
        outstanding -= batch.length
      }
    },
  }
}

/** @param why undefined: not an alarm, but more unconfirmed messages than we let wait */
function blockedFault(outcome: Fault['outcome'], why: string | undefined): Fault {
  const what =
    why === undefined
      ? `${OUTSTANDING_MAX} messages wait for its confirms; send more slowly`
      : `it takes none now (${why}); it will when its alarm ends, so free memory or disk there`
  return { code: 'throttled', retryable: true, outcome, cause: new Error(`rabbitmq: ${what}`) }
}

function unansweredFault(timeoutMs: number): Fault {
  const message = `rabbitmq: no confirm came (limit ${timeoutMs} ms)`
  return goneFault(new MillraceError('MILLRACE_UNAVAILABLE', message, { retryable: true }))
}
