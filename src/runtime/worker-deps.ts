import type { DeadLetterView } from '../admin/admin.ts'
import type { QueueFlow } from '../flow/queue-flow.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import type { Transport } from '../transport/transport.ts'
import type { Counting } from './counters.ts'
import type { Departures } from './departures.ts'
import type { Handler } from './message.ts'
import type { AnyQueue } from './queue.ts'
import type { Sender } from './sender.ts'

/** What a worker of one queue is made of. */
export interface WorkerDeps<Tx> {
  readonly queue: AnyQueue
  readonly handler: Handler<unknown, Tx>
  readonly flow: QueueFlow
  readonly transport: Transport
  readonly inbox: Inbox<Tx> | undefined
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly counters: Counting
  readonly departures: Departures
  readonly senderOf: (queue: AnyQueue) => Sender
  readonly onDead: (deadLetter: DeadLetterView) => void
}

/** Time between the end of the handler's time and the end of our patience: for its clean-up, and to settle. */
export const GRACE_MS = 5_000

const LEASE_MAX_MS = 30_000

/** Short, so that crash recovery takes seconds however long handlers run; renewal covers long handlers. */
export function leaseMsOf(queue: AnyQueue): number {
  return Math.min(queue.handlerTimeoutMs + GRACE_MS, LEASE_MAX_MS)
}
