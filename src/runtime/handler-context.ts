import { MillraceError } from '../model/errors.ts'
import type { LogFields, Logger } from '../model/logger.ts'
import type { HandlerContext } from './message.ts'
import type { AnyQueue } from './queue.ts'
import type { Run } from './run.ts'
import type { SendOptions, SendResult } from './send.ts'

/** What the handler gets as its second argument. */
export function handlerContext<Tx>(run: Run<Tx>): HandlerContext<Tx> {
  return new Context(run)
}

/** A class for the reason that LazyAbort gives; `tx` and `send` are fields, so that a handler may take them apart. */
class Context<Tx> implements HandlerContext<Tx> {
  readonly #run: Run<Tx>
  #log: Logger | undefined

  constructor(run: Run<Tx>) {
    this.#run = run
  }

  get signal(): AbortSignal {
    return this.#run.abort.signal
  }

  get log(): Logger {
    this.#log ??= withFields(this.#run.deps.logger, this.#run.names)
    return this.#log
  }

  readonly tx: HandlerContext<Tx>['tx'] = async (work) => {
    if (this.#run.over) refuse(this.#run, 'ctx.tx', 'the attempt')
    return this.#run.effect.run(work)
  }

  readonly send: HandlerContext<Tx>['send'] = (queue, payload, options) =>
    send(this.#run, queue, payload, options)
}

function send<Tx>(
  run: Run<Tx>,
  queue: AnyQueue,
  payload: unknown,
  options: SendOptions | undefined,
): Promise<SendResult> {
  try {
    if (run.over) refuse(run, 'ctx.send', 'the attempt')
    if (run.effect.isOver()) refuse(run, 'ctx.send', 'the ctx.tx around it')
    const sender = run.deps.senderOf(queue)
    const own = options?.tx !== undefined
    const joined = own
      ? undefined
      : run.effect.join((tx) => sender.sendNow(payload, { ...options, tx }))
    return Promise.resolve(joined ?? sender.sendNow(payload, options))
  } catch (error) {
    const rejected = Promise.reject(error)
    // Inside a synchronous transaction nobody can await it; the transaction itself fails with this error.
    rejected.catch(() => undefined)
    return rejected
  }
}

function refuse<Tx>(run: Run<Tx>, what: string, when: string): never {
  const { queue, messageId } = run.names
  const late = new MillraceError(
    'MILLRACE_CONTEXT_CLOSED',
    `queue "${queue}": ${what} was called after ${when} of message ${messageId} had ended; await it inside`,
    { fields: { queue, messageId } },
  )
  // A late call is often one that nobody awaits, so the rejection alone might go unseen.
  run.deps.logger.error(late.message, { code: late.code })
  throw late
}

function withFields(logger: Logger, fields: LogFields): Logger {
  return {
    debug: (message, more) => logger.debug(message, { ...fields, ...more }),
    info: (message, more) => logger.info(message, { ...fields, ...more }),
    warn: (message, more) => logger.warn(message, { ...fields, ...more }),
    error: (message, more) => logger.error(message, { ...fields, ...more }),
  }
}
