import { pause } from '../../model/clock.ts'
import { hasCode, type MillraceError } from '../../model/errors.ts'
import { read } from '../../model/probe.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import type { AmqpChannel } from './amqp-shapes.ts'
import type { Broker } from './broker.ts'
import { explained } from './consumer-timeout.ts'
import { withinLimit } from './limit.ts'
import { awayError, messageOf } from './link.ts'
import type { Pulse } from './pulse.ts'

/** What an attachment puts on each of its channels. */
export interface Attached {
  /** Fires `lost` for all that it holds. */
  lose(): void
  close(): Promise<void>
}

/** Keeps a consumer on a queue: whatever ends its channel, another one follows. */
export interface Attachment<C extends Attached> {
  /** Undefined while there is none. */
  consumer(): C | undefined
  /** The queue is not there. */
  missing(): MillraceError | undefined
  /** There is no channel, for whatever reason. */
  away(): MillraceError | undefined
  /** A call on this consumer's channel failed: begin anew. */
  failed(consumer: C, error: unknown): void
  /** Gives back all that this consumer has, by the end of its channel, and begins anew. */
  renew(consumer: C): void
}

/** A channel, and the pulse of its connection. */
export interface Opened {
  readonly channel: AmqpChannel
  readonly pulse: Pulse | undefined
}

export interface AttachmentParts<C extends Attached> {
  readonly broker: Broker
  /** In the log. */
  readonly name: string
  readonly queue: string
  readonly put: (on: Opened, onCancelled: () => void) => C
  readonly onNews: () => void
  readonly closing: AbortSignal
  /** The loss of the connection ends many of them at once; one tells. */
  readonly tellsLoss: boolean
}

const CONNECTION_LOST = 'its connection was lost'
const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 2_000

/** Resolves with the first channel; rejects when the queue is not there. */
export async function attach<C extends Attached>(
  parts: AttachmentParts<C>,
): Promise<Attachment<C>> {
  const { broker, name, closing, onNews } = parts
  const { clock, random, logger } = broker
  let consumer: C | undefined
  let missing: MillraceError | undefined
  let away: MillraceError | undefined
  let isTold = false

  const isOver = (): boolean => closing.aborted || broker.closing.aborted

  const open = async (): Promise<void> => {
    consumer = await putOnChannel(parts, (gone, because) => ended(gone, because))
  }

  const ended = (gone: C, because: string): void => {
    if (!leave(gone) || isOver()) return
    away = awayError('consuming', because)
    isTold = because !== CONNECTION_LOST || parts.tellsLoss
    if (isTold) {
      logger.warn(
        `rabbitmq: the channel of queue "${name}" ended (${because}); opening another one`,
      )
    }
    onNews()
    void reopen()
  }

  /** Its claims end before its channel does. Whether it was the present one. */
  const leave = (gone: C): boolean => {
    gone.lose()
    if (consumer !== gone) return false
    consumer = undefined
    gone.close().catch(() => {})
    return true
  }

  const reopen = async (): Promise<void> => {
    let backoffMs = BACKOFF_FIRST_MS
    while (!isOver()) {
      try {
        if ((await broker.consuming.up(AbortSignal.any([closing, broker.closing]))) === undefined)
          return
        await open()
        if (isOver()) return void consumer?.close().catch(() => {})
        if (isTold) logger.info(`rabbitmq: queue "${name}" has a channel again`)
        isTold = false
        missing = undefined
        away = undefined
        return onNews()
      } catch (error) {
        away = awayBy(error)
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
    away: () =>
      consumer === undefined ? (away ?? awayError('consuming', 'no channel')) : undefined,
    failed: (failing, error) => ended(failing, messageOf(error)),
    renew(old) {
      if (leave(old) && !isOver()) void reopen()
    },
  }
}

/** What the link itself says names the connection already. */
function awayBy(error: unknown): MillraceError {
  return hasCode(error, 'MILLRACE_UNAVAILABLE') ? error : awayError('consuming', messageOf(error))
}

/** On a channel of its own, once that has seen the queue. */
async function putOnChannel<C extends Attached>(
  { broker, name, queue, put }: AttachmentParts<C>,
  ended: (gone: C, because: string) => void,
): Promise<C> {
  const opening = broker.consuming.current().createChannel()
  const pulse = broker.consuming.pulse()
  const channel = await withinLimit(broker, 'opening a channel', opening)
  let reason: unknown = CONNECTION_LOST
  channel.on('error', (error) => {
    reason = error
  })
  const opened = put({ channel, pulse }, () =>
    ended(opened, 'the queue was deleted, or moved to another node'),
  )
  let isClosed = false
  channel.on('close', () => {
    isClosed = true
    ended(opened, explained(messageOf(reason)))
  })
  await withinLimit(broker, `looking for queue "${name}"`, channel.checkQueue(queue))
  if (isClosed) throw awayError('consuming', messageOf(reason))
  return opened
}
