import type { RoomTurn } from '../deadletters/redrive.ts'
import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import type { Transport } from '../transport/transport.ts'
import { admission } from './admission.ts'
import { retryAfterMaxMs } from './capacity-choice.ts'
import type { Counting } from './counters.ts'
import type { Departures } from './departures.ts'
import { drainRate } from './drain-rate.ts'
import type { HeldLine } from './held-line.ts'
import { levelsOf } from './levels-of.ts'
import type { AnyQueue } from './queue.ts'
import { queueTotal } from './queue-total.ts'
import { type Sender, sender } from './sender.ts'
import type { SendsUnderWay } from './sends-under-way.ts'
import { sheddingSender } from './shedding-sender.ts'
import type { TransactionSends } from './transaction-sends.ts'
import { waitingSender } from './waiting-sender.ts'

export interface QueueSenderOptions {
  readonly queue: AnyQueue
  readonly transport: Transport
  readonly held: HeldLine
  readonly transactions: TransactionSends
  readonly counters: Counting
  readonly clock: Clock
  readonly logger: Logger
  readonly newId: () => string
  readonly underWay: SendsUnderWay
  /** Fires when the app is closed. */
  readonly closed: AbortSignal
}

/** Sends to one queue, and what becomes of them when it is full. */
export function queueSender(options: QueueSenderOptions): {
  readonly sender: Sender
  readonly departures: Departures
  readonly turn: RoomTurn | undefined
} {
  const { queue, transport, held, transactions, counters, clock, logger, newId, closed } = options
  const now = (): number => clock.now()
  const total = queueTotal({ queue: queue.name, transport, now })
  const drain = drainRate({ now, maxMs: retryAfterMaxMs(queue), total })
  const admitted = admission({ queue, transport, now, drain, total })
  const traits = { ...transport.traits, priorities: levelsOf(queue, transport) }
  const plain = sender({
    queue,
    clock,
    transport,
    held,
    transactions,
    admission: admitted,
    prepare: { newId, backend: { name: transport.name, traits } },
    drain,
    underWay: options.underWay,
    onSent: (messages) => {
      counters.sent += messages
      total.sent(messages)
    },
    closed,
  })
  const shedding = sheddingSender(plain, {
    ...{ queue, transport, admission: admitted, now, logger, closed },
    onShed: (messages) => {
      counters.shed += messages
    },
  })
  const { sender: waiting, look, turn } = waitingSender(shedding, { queue, clock, drain, closed })
  const departures: Departures = {
    mark: admitted.mark,
    left: (messages, mark) => {
      drain.note(messages)
      admitted.left(messages, mark)
      look()
    },
  }
  return { sender: waiting, departures, turn }
}
