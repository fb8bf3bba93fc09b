import type { Clock } from '../../model/clock.ts'
import type { Delivery } from '../../model/delivery.ts'
import type { AmqpChannel, AmqpMessage } from './amqp-shapes.ts'
import { inSession, newSession, type Session } from './claim.ts'
import { type LaneEntry, laneLine } from './lane-line.ts'
import { type Reading, readMessage } from './message.ts'
import type { Pulse } from './pulse.ts'
import { openQuestions } from './questions.ts'

/** The receipt of a delivery: one handing out of one entry. */
export interface LaneReceipt {
  readonly consumer: LaneConsumer
  readonly entry: LaneEntry
  readonly handing: number
}

/**
 * A channel that consumes from one lane, and what it has of it. It acks, or it ends, and then all that is left comes again to
 * the next consumer in its order. Nothing is given back one by one, and no consumption is cancelled: what was given back would
 * come behind what this channel still has, and a cancelled consumer keeps its messages while the next one gets those behind
 * them (docs/decisions/0013-order-by-key.md).
 */
export interface LaneConsumer {
  /** Whether it takes part: the broker pushes once its turn has come. */
  isOn(): boolean
  start(): Promise<void>
  /** Something has come: the lane is ours. */
  isActive(): boolean
  /** Whether something runs here, or is on its way out. */
  isBusy(): boolean
  /** Whether something that failed waits here for its moment. */
  isHolding(): boolean
  /** The broker may push so many; 0 before the start. */
  window(): number
  /** Since when it has what is first here. */
  since(): number | undefined
  take(max: number): readonly Delivery[]
  isOurs(receipt: LaneReceipt): boolean
  /** Writes the acks, and resolves when the broker's channel has taken them; then their keys go on. */
  ack(receipts: readonly LaneReceipt[]): Promise<void>
  /** It failed: it keeps its place, and comes again after this time. */
  hold(receipt: LaneReceipt, delayMs: number): void
  /** Fires `lost` for all, once. */
  lose(): void
  close(): Promise<void>
}

export interface LaneConsumerParts {
  readonly channel: AmqpChannel
  /** Of its connection. */
  readonly pulse: Pulse | undefined
  readonly lane: string
  readonly clock: Clock
  readonly prefetch: () => number
  readonly reading: () => Reading
  readonly onNews: () => void
  readonly onCancelled: () => void
}

export function openLaneConsumer(parts: LaneConsumerParts): LaneConsumer {
  const { channel, lane, clock, onNews } = parts
  const session = newSession(parts.pulse)
  const timers = new Set<() => void>()
  let line = laneLine()
  let limit = 0
  let started: Promise<void> | undefined
  let isActive = false
  const questions = openQuestions(async () => {
    await channel.prefetch(limit)
  })

  const arrived = (message: AmqpMessage | null): void => {
    if (message === null) {
      parts.onCancelled()
      return
    }
    isActive = true
    const read = readMessage(message, parts.reading(), true)
    line.add({ message, read, cameAt: clock.now(), state: 'waiting', handed: 0 })
    onNews()
  }
  const start = async (): Promise<void> => {
    limit = parts.prefetch()
    await channel.prefetch(limit)
    await channel.consume(lane, arrived)
  }
  const handOut = (entry: LaneEntry): Delivery =>
    deliveryOf({ consumer, entry, handing: entry.handed }, lane, session)
  const wakeIn = (entry: LaneEntry, delayMs: number): void => {
    const cancel = clock.after(delayMs, () => {
      timers.delete(cancel)
      entry.state = 'waiting'
      onNews()
    })
    timers.add(cancel)
  }

  const consumer: LaneConsumer = {
    isOn: () => started !== undefined,
    start() {
      started ??= start()
      return started
    },
    isActive: () => isActive,
    isBusy: () => line.isBusy(),
    isHolding: () => line.isHolding(),
    window: () => limit,
    since: () => line.since(),
    take: (max) => line.take(max).map(handOut),
    isOurs: ({ entry, handing }) =>
      !session.lost.aborted && entry.state === 'running' && entry.handed === handing,
    async ack(receipts) {
      for (const { entry } of receipts) {
        entry.state = 'ending'
        channel.ack(entry.message, false)
      }
      await questions.ask()
      for (const { entry } of receipts) line.remove(entry)
      onNews()
    },
    hold({ entry }, delayMs) {
      entry.state = delayMs > 0 ? 'held' : 'waiting'
      if (delayMs > 0) wakeIn(entry, delayMs)
      else onNews()
    },
    lose() {
      for (const cancel of timers) cancel()
      timers.clear()
      line = laneLine()
      session.lost.abort()
    },
    async close() {
      await channel.close()
    },
  }
  return consumer
}

function deliveryOf(receipt: LaneReceipt, lane: string, session: Session): Delivery {
  const { read, handed } = receipt.entry
  const deliveries = read.deliveries && read.deliveries + handed - 1
  return inSession(session, { ...read, deliveries }, { lane, receipt })
}
