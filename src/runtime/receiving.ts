import { pause } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Subscription } from '../transport/transport.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** Receives again and again, whatever goes wrong: only the stop signal ends it. */
export interface Receiving {
  /** Empty after an error, once it has waited for its backoff. */
  receive(
    from: Subscription,
    options: { readonly max: number; readonly waitMs: number },
  ): Promise<readonly Delivery[]>
  noteRenewError(error: unknown): void
  problems(): readonly string[]
}

const BACKOFF_FIRST_MS = 100
const BACKOFF_MAX_MS = 5_000
/** Beyond what was asked for: a receive that takes longer hangs, and nothing else would tell. */
const LATE_MS = 15_000

export function receiving<Tx>(deps: WorkerDeps<Tx>, stopped: AbortSignal): Receiving {
  const { queue, clock, logger, transport } = deps
  let backoffMs = BACKOFF_FIRST_MS
  let failing: { readonly since: number; why: string } | undefined
  let answerDueAt = Number.POSITIVE_INFINITY

  const note = (error: unknown, what: string): void => {
    const fault = transport.diagnose(error)
    const why = `${fault.code}: ${messageOfError(error)}`
    if (failing === undefined) {
      failing = { since: clock.now(), why }
      logger.error(`queue "${queue.name}": ${what} failed (${why}); trying again until it works`, {
        queue: queue.name,
      })
    } else failing.why = why
  }

  const recovered = (): void => {
    if (failing === undefined) return
    const forMs = clock.now() - failing.since
    logger.warn(`queue "${queue.name}": receiving again after ${forMs} ms`, { queue: queue.name })
    failing = undefined
    backoffMs = BACKOFF_FIRST_MS
  }

  return {
    receive: async (from, options) => {
      answerDueAt = clock.now() + options.waitMs + LATE_MS
      try {
        const batch = await from.receive({ ...options, signal: stopped })
        recovered()
        return batch
      } catch (error) {
        if (stopped.aborted) return []
        note(error, 'receiving')
        await pause(clock, backoffMs * (0.5 + deps.random() / 2), stopped)
        backoffMs = Math.min(BACKOFF_MAX_MS, backoffMs * 2)
        return []
      } finally {
        answerDueAt = Number.POSITIVE_INFINITY
      }
    },
    noteRenewError: (error) => {
      logger.warn(
        `queue "${queue.name}": renewing leases failed (${transport.diagnose(error).code})`,
        {
          queue: queue.name,
          cause: error,
        },
      )
    },
    problems: () => {
      const problem = (since: number, why: string): string =>
        `queue "${queue.name}": not receiving since ${new Date(since).toISOString()} (${why})`
      if (clock.now() > answerDueAt) {
        return [problem(answerDueAt - LATE_MS, 'the backend does not answer')]
      }
      return failing === undefined ? [] : [problem(failing.since, failing.why)]
    },
  }
}
