import type { Clock } from '../../model/clock.ts'
import type { Logger } from '../../model/logger.ts'
import type { Link } from './link.ts'
import type { Resolved } from './options.ts'
import type { Server } from './server.ts'

/** One broker with what every part of the transport needs. */
export interface Broker {
  readonly options: Resolved
  readonly server: Server
  /** Apart, because an alarm of the broker stops it from reading a connection that publishes, acks included. */
  readonly publishing: Link
  readonly consuming: Link
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  /** Fires when the transport closes; everything that waits gives up. */
  readonly closing: AbortSignal
}
