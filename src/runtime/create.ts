import type { DeadLetterView } from '../admin/admin.ts'
import type { InboxConnector } from '../inbox/inbox.ts'
import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import type { OutboxConnector } from '../outbox/outbox.ts'
import type { StoreConnector } from '../store/store.ts'
import type { Connector } from '../transport/transport.ts'
import type { ClaimCheckChoice } from './claim-check-choice.ts'
import type { AnyQueue } from './queue.ts'

/** What `createMillrace` takes, and the shape of a config file's default export (see `defineConfig`). */
export interface MillraceOptions<Tx = unknown> {
  readonly transport: Connector
  /**
   * Keeps what the transport cannot. Memory, SQLite, Postgres and Redis are their own: breakers and rates that all workers share lie
   * beside their queues.
   */
  readonly store?: StoreConnector
  readonly queues: readonly AnyQueue[]
  readonly inbox?: InboxConnector<Tx>
  readonly outbox?: OutboxConnector
  /** Large bodies lie in a blob store, and a reference travels. */
  readonly claimCheck?: ClaimCheckChoice
  /** `auto` brings schemas up to date at start-up; `check` refuses an outdated one. Default `auto`. */
  readonly migrate?: 'auto' | 'check'
  /** Close on SIGTERM and SIGINT, from now on, started or not; a second signal aborts at once. Default false. */
  readonly signals?: boolean
  /** Default: the machine's. */
  readonly clock?: Clock
  /** 0 <= n < 1. Default: Math.random. */
  readonly random?: () => number
  /** Default: warnings and errors to the console. */
  readonly logger?: Logger
  /** Called at once for each message that dies; its own failure is logged and changes nothing. `close` waits for it within its time. */
  readonly onDeadLetter?: (deadLetter: DeadLetterView) => unknown
  /**
   * How long after a message died a redrive must still find its key in the inbox, in ms; part of the inbox's needed
   * time to live. Default 604,800,000 (7 days).
   */
  readonly redriveWindowMs?: number
}
