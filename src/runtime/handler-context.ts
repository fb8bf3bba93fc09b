import { MillraceError } from '../model/errors.ts'
import type { LazyAbort } from '../model/lazy-abort.ts'
import type { LogFields, Logger } from '../model/logger.ts'
import type { Effect } from './effect.ts'
import type { HandlerContext } from './message.ts'
import type { AnyQueue } from './queue.ts'
import type { Sender } from './sender.ts'

export interface HandlerContextOptions<Tx> {
  readonly queue: string
  readonly messageId: string
  readonly attempt: number
  readonly abort: LazyAbort
  readonly effect: Effect<Tx>
  readonly logger: Logger
  readonly senderOf: (queue: AnyQueue) => Sender
  /** True once the run has ended: nothing may be sent in its name any more. */
  readonly ended: () => boolean
}

/** What the handler gets as its second argument. */
export function handlerContext<Tx>(options: HandlerContextOptions<Tx>): HandlerContext<Tx> {
  const refuse = (what: string, when: string): never => {
    const late = new MillraceError(
      'MILLRACE_CONTEXT_CLOSED',
      `queue "${options.queue}": ${what} was called after ${when} of message ${options.messageId} had ended; await it inside`,
      { fields: { queue: options.queue, messageId: options.messageId } },
    )
    // A late call is often one that nobody awaits, so the rejection alone might go unseen.
    options.logger.error(late.message, { code: late.code })
    throw late
  }
  let log: Logger | undefined
  return {
    get signal() {
      return options.abort.signal
    },
    get log() {
      log ??= withFields(options.logger, {
        queue: options.queue,
        messageId: options.messageId,
        attempt: options.attempt,
      })
      return log
    },
    tx: async (work) => {
      if (options.ended()) refuse('ctx.tx', 'the attempt')
      return options.effect.run(work)
    },
    send: (queue, payload, send) => {
      try {
        if (options.ended()) refuse('ctx.send', 'the attempt')
        if (options.effect.isOver()) refuse('ctx.send', 'the ctx.tx around it')
        const sender = options.senderOf(queue)
        const own = send?.tx !== undefined
        const joined = own
          ? undefined
          : options.effect.join((tx) => sender.sendNow(payload, { ...send, tx }))
        return Promise.resolve(joined ?? sender.sendNow(payload, send))
      } catch (error) {
        const rejected = Promise.reject(error)
        // Inside a synchronous transaction nobody can await it; the transaction itself fails with this error.
        rejected.catch(() => undefined)
        return rejected
      }
    },
  }
}

function withFields(logger: Logger, fields: LogFields): Logger {
  return {
    debug: (message, more) => logger.debug(message, { ...fields, ...more }),
    info: (message, more) => logger.info(message, { ...fields, ...more }),
    warn: (message, more) => logger.warn(message, { ...fields, ...more }),
    error: (message, more) => logger.error(message, { ...fields, ...more }),
  }
}
