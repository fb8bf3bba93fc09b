import { MillraceError } from '../model/errors.ts'
import type { LogFields, Logger } from '../model/logger.ts'
import { type MaybePromise, promised } from '../model/maybe-promise.ts'
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

  readonly tx: HandlerContext<Tx>['tx'] = (work) =>
    this.#run.over
      ? refused(() => refuse(this.#run, 'ctx.tx', 'the attempt'))
      : this.#run.looseEnds.follow(this.#run.effect.run(work), { decides: true })

  readonly send: HandlerContext<Tx>['send'] = (queue, payload, options) =>
    send(this.#run, queue, payload, options)
}

function send<Tx>(
  run: Run<Tx>,
  queue: AnyQueue,
  payload: unknown,
  options: SendOptions | undefined,
): Promise<SendResult> {
  if (run.over) return refused(() => refuse(run, 'ctx.send', 'the attempt'))
  if (run.effect.isOver()) return refused(() => refuse(run, 'ctx.send', 'the ctx.tx around it'))
  const deliver = (tx?: unknown): MaybePromise<SendResult> =>
    run.deps.senderOf(queue).sendNow(payload, tx === undefined ? options : { ...options, tx })
  if (options?.tx === undefined && run.effect.isInside()) {
    // Nobody may be able to await it in there; the transaction itself fails with its error.
    return refused(() => run.effect.join(deliver))
  }
  return run.looseEnds.follow(promised(deliver), { decides: false })
}

/** A rejection that others see too: one that nobody looks at must not end the process. */
function refused<T>(act: () => MaybePromise<T>): Promise<T> {
  const promise = promised(act)
  promise.catch(() => undefined)
  return promise
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
