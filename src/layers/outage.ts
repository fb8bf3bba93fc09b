import type { Clock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'

/** What is tried again and again: its failures are told when they begin, change and end, and now and then meanwhile. */
export interface Outage {
  failed(cause: unknown): void
  worked(): void
}

export interface OutageOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly queue: string
  /** What does not happen meanwhile: `delayed messages wait longer`. */
  readonly what: string
}

/** Somebody who looks at the last minute of a log sees it. */
const AGAIN_MS = 60_000

export function outage({ clock, logger, queue, what }: OutageOptions): Outage {
  let failing: { readonly since: number; readonly toldAt: number; readonly why: string } | undefined
  return {
    failed: (cause) => {
      const now = clock.now()
      const why = messageOfError(cause)
      const since = failing?.since ?? now
      if (failing?.why === why && now - failing.toldAt < AGAIN_MS) return
      failing = { since, toldAt: now, why }
      const forMs = now - since
      const long = forMs > 0 ? `, for ${Math.round(forMs / 1_000)} s now` : ''
      logger.warn(`queue "${queue}": ${what}${long} (${why})`, { queue, cause })
    },
    worked: () => {
      if (failing === undefined) return
      const forS = Math.round((clock.now() - failing.since) / 1_000)
      logger.warn(`queue "${queue}": over after ${forS} s: ${what}`, { queue })
      failing = undefined
    },
  }
}
