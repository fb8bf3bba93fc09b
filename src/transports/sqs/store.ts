import type { Clock } from '../../model/clock.ts'
import type { Logger } from '../../model/logger.ts'
import type { SqsApi } from './api.ts'
import type { Places } from './places.ts'

export type Kind = 'standard' | 'fifo'

/** What one connection shares. */
export interface Store {
  readonly api: SqsApi
  readonly places: Places
  readonly kind: Kind
  readonly sns: boolean
  readonly clock: Clock
  readonly logger: Logger
  /** The transport closes: receives end, sends are refused; what is in hand is still released. */
  readonly closing: AbortSignal
  /** Queues of which SQS hands out no more, because too much is in flight. */
  readonly overLimit: Set<string>
}

/** How long a closing subscription waits for its release; after that its leases simply run out. */
export const CLOSE_TIMEOUT_MS = 2_000
