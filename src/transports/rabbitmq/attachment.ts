import { pause } from '../../model/clock.ts'
import type { MillraceError } from '../../model/errors.ts'
import { read } from '../../model/probe.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import type { AmqpChannel } from './amqp-shapes.ts'
import type { Broker } from './broker.ts'
import { type Consumer, openConsumer } from './consumer.ts'
import { explained } from './consumer-timeout.ts'
import { withinLimit } from './limit.ts'
import { awayError, messageOf } from './link.ts'
import type { Reading } from './message.ts'

/** Keeps a consumer on a queue: whatever ends its channel, another one follows. */
export interface Attachment {
  /** Undefined while there is none. */
  consumer(): Consumer | undefined
  /** The queue is not there. */
  missing(): MillraceError | undefined
  /** There is no channel, for whatever reason. */
  away(): MillraceError | undefined
  /** A call on this consumer's channel failed: begin anew. */
  failed(consumer: Consumer, error: unknown): void
}

export interface AttachmentParts {
  readonly broker: Broker
  readonly name: string
  readonly queue: string
  readonly prefetch: () => number
  readonly reading: () => Reading
  readonly onNews: () => void
  readonly closing: AbortSignal
}

const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 2_000

/** Resolves with the first channel; rejects when the queue is not there. */
export async function attach(parts: AttachmentParts): Promise<Attachment> {
  const { broker, name, closing, onNews } = parts
  const { clock, random, logger } = broker
  let consumer: Consumer | undefined
  let missing: MillraceError | undefined
  let why: string | undefined

  const isOver = (): boolean => closing.aborted || broker.closing.aborted

  const open = async (): Promise<void> => {
    const channel = await withinLimit(
      broker,
      'opening a channel',
      broker.consuming.current().createChannel(),
    )
    let reason: unknown = 'its connection was lost'
    channel.on('error', (error) => {
      reason = error
    })
    const opened = consumerOn(channel, parts, () =>
      ended(opened, 'the queue was deleted, or moved to another node'),
    )
    let isClosed = false
    channel.on('close', () => {
      isClosed = true
      ended(opened, explained(messageOf(reason)))
    })
    await withinLimit(broker, `looking for queue "${name}"`, channel.checkQueue(parts.queue))
    if (isClosed) throw awayError('consuming', messageOf(reason))
    consumer = opened
  }

  const ended = (gone: Consumer, because: string): void => {
    gone.lose()
    if (consumer !== gone) return
    consumer = undefined
    if (isOver()) return
    why = because
    logger.warn(`rabbitmq: the channel of queue "${name}" ended (${because}); opening another one`)
    gone.close().catch(() => {})
    onNews()
    void reopen()
  }

  const reopen = async (): Promise<void> => {
    let backoffMs = BACKOFF_FIRST_MS
    while (!isOver()) {
      try {
        if ((await broker.consuming.up(AbortSignal.any([closing, broker.closing]))) === undefined)
          return
        await open()
        if (isOver()) return void consumer?.close().catch(() => {})
        logger.info(`rabbitmq: queue "${name}" has a channel again`)
        missing = undefined
        why = undefined
        return onNews()
      } catch (error) {
        why = messageOf(error)
        missing = read(error, 'code') === 404 ? unknownQueueError(name) : undefined
        onNews()
      }
      await pause(clock, backoffMs * (0.5 + random() / 2), closing)
      backoffMs = Math.min(BACKOFF_MAX_MS, backoffMs * 2)
    }
  }

  try {
    await open()
  } catch (error) {
    if (read(error, 'code') === 404) throw unknownQueueError(name)
    throw error
  }
  return {
    consumer: () => consumer,
    missing: () => missing,
    away: () => (consumer === undefined ? awayError('consuming', why ?? 'no channel') : undefined),
    failed: (failing, error) => ended(failing, messageOf(error)),
  }
}

function consumerOn(
  channel: AmqpChannel,
  { broker, queue, prefetch, reading, onNews }: AttachmentParts,
  onCancelled: () => void,
): Consumer {
  const counts = broker.options.queueType === 'quorum'
  return openConsumer({ channel, queue, counts, prefetch, reading, onNews, onCancelled })
}
