import type { Cancel } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import { MillraceError } from '../model/errors.ts'
import { lazyAbort } from '../model/lazy-abort.ts'
import { type Effect, effect } from './effect.ts'
import { handlerContext } from './handler-context.ts'
import type { Message } from './message.ts'
import { GRACE_MS, leaseMsOf, type WorkerDeps } from './worker-deps.ts'

/** One run of a handler, from its start to the moment when its outcome is decided. */
export interface Run {
  readonly delivery: Delivery
  readonly message: Message<unknown>
  readonly ended: Promise<RunEnd>
  /** When the handler itself returned, which may be after the end. */
  readonly returned: Promise<void>
  /** The claim is gone: the handler is told, its outcome no longer counts. */
  lose(): void
  /** The process ends: the handler is told and the message given back. */
  shutDown(): void
}

export type RunEnd =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** Given back without blame. */
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'lost' }

export interface StartedRun extends Run {
  readonly effect: Pick<Effect<unknown>, 'state'>
}

/** Starts the handler. It is called at once, in the async context of the caller. */
export function startRun<Tx>(
  deps: WorkerDeps<Tx>,
  delivery: Delivery,
  message: Message<unknown>,
): StartedRun {
  const { queue, clock, counters } = deps
  const abort = lazyAbort()
  const names = { queue: queue.name, messageId: message.id, attempt: message.attempt }
  let over = false
  let timer: Cancel | undefined
  let finish: (end: RunEnd) => void = () => undefined
  const ended = new Promise<RunEnd>((resolve) => {
    finish = resolve
  })
  const end = (outcome: RunEnd): void => {
    if (over) return
    over = true
    timer?.()
    finish(outcome)
  }
  /** The handler did not stop though told to: its slot is freed, its late result ignored and counted. */
  const abandon = (outcome: RunEnd): void => {
    if (over) return
    counters.abandoned++
    void returned.finally(() => void counters.abandoned--)
    deps.logger.error(
      `queue "${queue.name}": the handler of message ${message.id} did not stop when its signal fired; its slot is freed while it still runs`,
      names,
    )
    end(outcome)
  }

  const ownEffect = effect<Tx>({
    queue: queue.name,
    message,
    delivery,
    transport: deps.transport,
    inbox: deps.inbox,
    leaseMs: leaseMsOf(queue),
    forbidden: () => (over || abort.aborted ? forbiddenError(abort.reason, names) : undefined),
  })
  const ctx = handlerContext<Tx>({
    ...names,
    abort,
    effect: ownEffect,
    logger: deps.logger,
    senderOf: deps.senderOf,
    ended: () => over,
  })
  const lost = (): void => {
    if (over || abort.reason instanceof LeaseLost) return
    abort.abort(new LeaseLost(names))
    timer?.()
    timer = clock.after(GRACE_MS, () => abandon({ kind: 'lost' }))
  }
  timer = clock.after(queue.handlerTimeoutMs, () => {
    const error = new HandlerTimeout(names, queue.handlerTimeoutMs)
    abort.abort(error)
    timer = clock.after(GRACE_MS, () => abandon({ kind: 'failed', error }))
  })
  counters.started++
  const returned = call(() => deps.handler(message, ctx)).then((outcome) => {
    end(abort.aborted ? endOfAborted(outcome, abort.reason) : outcome)
  })

  return {
    delivery,
    message,
    ended,
    returned,
    effect: ownEffect,
    lose: lost,
    shutDown: () => {
      if (over) return
      abort.abort(
        new MillraceError('MILLRACE_SHUTTING_DOWN', 'the worker is shutting down', {
          fields: names,
        }),
      )
      end({ kind: 'interrupted' })
    },
  }
}

async function call(handler: () => unknown): Promise<RunEnd> {
  try {
    await handler()
    return { kind: 'succeeded' }
  } catch (error) {
    return { kind: 'failed', error }
  }
}

/** After its signal fired a handler may still have succeeded; a failure is blamed on what fired the signal. */
function endOfAborted(outcome: RunEnd, reason: unknown): RunEnd {
  if (reason instanceof LeaseLost) return { kind: 'lost' }
  if (outcome.kind !== 'failed' || !(reason instanceof HandlerTimeout)) return outcome
  return { kind: 'failed', error: reason }
}

type Names = Readonly<Record<'queue' | 'messageId', string> & { attempt: number }>

class HandlerTimeout extends MillraceError {
  constructor(names: Names, timeoutMs: number) {
    super(
      'MILLRACE_HANDLER_TIMEOUT',
      `queue "${names.queue}": the handler of message ${names.messageId} took longer than handlerTimeoutMs (${timeoutMs} ms)`,
      { retryable: true, fields: names },
    )
  }
}

class LeaseLost extends MillraceError {
  constructor(names: Names) {
    super(
      'MILLRACE_LEASE_LOST',
      `queue "${names.queue}": message ${names.messageId} is no longer ours (its lease ended, or it was cancelled); stop, it is handled elsewhere`,
      { fields: names },
    )
  }
}

function forbiddenError(reason: unknown, names: Names): MillraceError {
  if (reason instanceof MillraceError) return reason
  return new MillraceError(
    'MILLRACE_CONTEXT_CLOSED',
    `queue "${names.queue}": the attempt of message ${names.messageId} has ended`,
    { fields: names },
  )
}
