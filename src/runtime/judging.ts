import type { Clock } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Logger } from '../model/logger.ts'
import { isPromise, type MaybePromise } from '../model/maybe-promise.ts'
import type { Counting } from './counters.ts'
import { type Deadline, deadlines } from './deadlines.ts'
import type { Hands } from './hands.ts'
import type { Incoming } from './incoming.ts'
import type { AnyQueue } from './queue.ts'
import { judgementTimeout } from './run-errors.ts'

/**
 * Deliveries whose schema answers later. Each is judged by itself, with a slot and a part of the attempt's time: a schema that
 * asks somebody who never answers would else hold up everything that comes after it.
 */
export interface Judging {
  /**
   * Answers what is read already. Of the others `judged` is called, each when its time has come, unless the attempt's time or the
   * worker ends before. All are held already.
   */
  follow(
    batch: readonly Delivery[],
    reading: readonly MaybePromise<Incoming>[],
  ): readonly Incoming[]
  /** Schema calls that still run though their attempt is over. */
  readonly late: number
}

export interface JudgingOptions {
  readonly queue: AnyQueue
  readonly clock: Clock
  readonly logger: Logger
  readonly counters: Counting
  readonly hands: Pick<Hands, 'reserve' | 'settleLater' | 'notify'>
  /** Nothing begins any more: what is not judged yet goes back. */
  readonly stopped: AbortSignal
  /** The slot is kept until this has resolved. */
  readonly judged: (read: Incoming, tookMs: number) => Promise<void>
}

interface Judgement {
  readonly delivery: Delivery
  readonly since: number
  readonly deadline: Deadline
  readonly free: () => void
}

export function judging(options: JudgingOptions): Judging {
  const { queue, clock, counters, hands, stopped } = options
  const open = new Set<Judgement>()
  const late = new Set<Judgement>()

  const times = deadlines(clock, queue.handlerTimeoutMs, (deadline) => {
    for (const one of open) if (one.deadline === deadline) timeOut(one)
  })

  const close = (one: Judgement): void => {
    open.delete(one)
    times.leave(one.deadline)
  }

  /** A schema has no signal to listen to, so there is no grace. */
  const timeOut = (one: Judgement): void => {
    const { delivery } = one
    const { id } = delivery.envelope
    const attempt = delivery.history.counted + 1
    const names = { queue: queue.name, messageId: id, attempt }
    const error = judgementTimeout(names, queue.handlerTimeoutMs)
    options.logger.error(`${error.message}; its slot is freed while the schema still runs`, names)
    close(one)
    late.add(one)
    counters.abandoned++
    hands.settleLater(delivery, (to) => to.failure(delivery, error))
    one.free()
  }

  const giveBack = (one: Judgement): void => {
    const { delivery } = one
    close(one)
    hands.settleLater(delivery, (to) => to.giveBack(delivery, 0))
    one.free()
  }
  stopped.addEventListener('abort', () => {
    for (const one of open) giveBack(one)
  })

  const answered = (one: Judgement, read: Incoming): void => {
    if (open.has(one)) {
      close(one)
      options
        .judged(read, clock.now() - one.since)
        .catch((cause) => hands.settleLater(one.delivery, () => Promise.reject(cause)))
        .finally(one.free)
    } else if (late.delete(one)) {
      counters.abandoned--
      hands.notify()
    }
  }

  const wait = (delivery: Delivery, reading: Promise<Incoming>): void => {
    const since = clock.now()
    const free = hands.reserve(delivery)
    const one = { delivery, since, deadline: times.join(since), free }
    open.add(one)
    if (stopped.aborted) giveBack(one)
    void reading.then((read) => answered(one, read))
  }

  return {
    follow: (batch, reading) => {
      for (const [i, delivery] of batch.entries()) {
        const one = reading[i]
        if (one !== undefined && isPromise(one)) wait(delivery, one)
      }
      return reading.filter(isRead)
    },
    get late() {
      return late.size
    },
  }
}

export function isRead(one: MaybePromise<Incoming>): one is Incoming {
  return !isPromise(one)
}
