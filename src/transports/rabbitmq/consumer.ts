import type { Delivery } from '../../model/delivery.ts'
import { type AmqpChannel, type AmqpMessage, giveBack } from './amqp-shapes.ts'
import { inSession, newSession, type Session } from './claim.ts'
import { type Reading, readMessage } from './message.ts'
import type { Pulse } from './pulse.ts'
import { openQuestions } from './questions.ts'

/** A delivery that is ours while its consumer's channel lives; the receipt of its delivery. */
export interface Held {
  readonly consumer: Consumer
  readonly message: AmqpMessage
  /** Which start of the consumer it came from. */
  readonly turn: number
  /** False once it was settled or lost. */
  live: boolean
}

/** One channel that consumes from one queue, and what it holds. Ends with its channel, and all claims with it. */
export interface Consumer {
  /** Whether the broker pushes, or is just about to. */
  isOn(): boolean
  start(): Promise<void>
  /** Stops the push, and gives back what nobody has asked for. */
  park(): Promise<void>
  buffered(): number
  /** How many more the broker may push before something is settled. */
  room(): number
  take(max: number): readonly Delivery[]
  ack(batch: readonly Held[]): void
  release(held: Held): void
  /**
   * Resolves when the broker has taken all acks and releases so far: AMQP does not answer them, so we ask for
   * something else behind them.
   */
  taken(): Promise<void>
  /** Fires `lost` for all, once. */
  lose(): void
  close(): Promise<void>
}

export interface ConsumerParts {
  readonly channel: AmqpChannel
  /** Of its connection. */
  readonly pulse: Pulse | undefined
  readonly queue: string
  readonly counts: boolean
  readonly prefetch: () => number
  readonly reading: () => Reading
  readonly onNews: () => void
  /** The broker has ended the consumption, because the queue is gone. */
  readonly onCancelled: () => void
}

export function openConsumer(parts: ConsumerParts): Consumer {
  const { channel, queue, onNews, reading, counts } = parts
  const held = new Set<Held>()
  const session = newSession(parts.pulse)
  let buffer: Held[] = []
  let tag: string | undefined
  let turn = 0
  let limit = 0
  let starting: Promise<void> | undefined
  let stopping: Promise<void> | undefined
  const questions = openQuestions(async () => {
    await channel.prefetch(limit)
  })

  const arrived = (message: AmqpMessage | null): void => {
    if (message === null) {
      parts.onCancelled()
      return
    }
    const one: Held = { consumer, message, turn, live: true }
    held.add(one)
    buffer.push(one)
    onNews()
  }

  const start = async (): Promise<void> => {
    await stopping
    turn += 1
    limit = parts.prefetch()
    await channel.prefetch(limit)
    tag = (await channel.consume(queue, arrived)).consumerTag
  }

  const stop = async (): Promise<void> => {
    await starting
    if (tag === undefined) return
    await channel.cancel(tag)
    tag = undefined
    for (const one of buffer.splice(0)) release(one)
    onNews()
  }

  const gone = (one: Held): void => {
    one.live = false
    held.delete(one)
  }
  const release = (one: Held): void => {
    gone(one)
    channel[giveBack](one.message, false, true)
  }

  const consumer: Consumer = {
    isOn: () => starting !== undefined || (tag !== undefined && stopping === undefined),
    start() {
      starting ??= start().finally(() => {
        starting = undefined
      })
      return starting
    },
    park() {
      stopping ??= stop().finally(() => {
        stopping = undefined
      })
      return stopping
    },
    buffered: () => buffer.length,
    room: () => limit - countOf(held, turn),
    take(max) {
      return deliveriesOf(buffer.splice(0, max), { ...reading(), counts, session })
    },
    ack: (batch) => ackAll(channel, held, batch),
    release,
    taken: questions.ask,
    lose() {
      const all = [...held]
      held.clear()
      buffer = []
      for (const one of all) one.live = false
      session.lost.abort()
    },
    async close() {
      await channel.close()
    },
  }
  return consumer
}

function countOf(held: ReadonlySet<Held>, turn: number): number {
  let count = 0
  for (const one of held) if (one.turn === turn) count += 1
  return count
}

/** One command for all from the oldest on, and one for each other: a quorum queue writes each into its log. */
function ackAll(channel: AmqpChannel, held: Set<Held>, batch: readonly Held[]): void {
  for (const one of batch) one.live = false
  let front: Held | undefined
  for (const one of held) {
    if (one.live) break
    front = one
    held.delete(one)
  }
  if (front !== undefined) channel.ack(front.message, true)
  for (const one of batch) if (held.delete(one)) channel.ack(one.message, false)
}

interface Handing extends Reading {
  readonly counts: boolean
  readonly session: Session
}

function deliveriesOf(all: readonly Held[], handing: Handing): readonly Delivery[] {
  return all.map((one) => deliveryOf(one, handing))
}

function deliveryOf(held: Held, { newId, now, counts, session }: Handing): Delivery {
  const read = readMessage(held.message, { newId, now }, counts)
  return inSession(session, read, { lane: undefined, receipt: held })
}
