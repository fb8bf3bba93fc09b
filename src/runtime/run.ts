import type { Cancel } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import { MillraceError } from '../model/errors.ts'
import { LazyAbort } from '../model/lazy-abort.ts'
import { type Effect, type EffectState, effect } from './effect.ts'
import { handlerContext } from './handler-context.ts'
import { type LooseEnds, looseEnds } from './loose-ends.ts'
import type { Message } from './message.ts'
import { endOfAborted, forbiddenError, HandlerTimeout, LeaseLost } from './run-errors.ts'
import { GRACE_MS, leaseMsOf, type WorkerDeps } from './worker-deps.ts'

export type RunEnd =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** Given back without blame. */
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'lost' }

export interface RunDeps<Tx> extends WorkerDeps<Tx> {
  /** See `LeaseKeeper.isOver`. */
  readonly leaseOver: (delivery: Delivery) => boolean
}

const succeeded: RunEnd = { kind: 'succeeded' }

/**
 * One run of a handler, from its start to the moment when its outcome is decided. A class, because every message has
 * one and most need little of it: what a run may need later is made when it is needed (see LazyAbort).
 */
export class Run<Tx = unknown> {
  readonly delivery: Delivery
  readonly message: Message<unknown>
  readonly abort: LazyAbort = new LazyAbort()
  readonly ended: Promise<RunEnd>
  /** When the handler itself returned, which may be after the end. */
  readonly returned: Promise<void>
  readonly deps: RunDeps<Tx>
  #over = false
  #timer: Cancel
  #finish: (end: RunEnd) => void = () => undefined
  #effect: Effect<Tx> | undefined
  #looseEnds: LooseEnds | undefined

  /** Starts the handler: it is called at once, in the async context of the caller. */
  constructor(deps: RunDeps<Tx>, delivery: Delivery, message: Message<unknown>) {
    this.deps = deps
    this.delivery = delivery
    this.message = message
    this.ended = new Promise((resolve) => {
      this.#finish = resolve
    })
    this.#timer = deps.clock.after(deps.queue.handlerTimeoutMs, () => this.#timeOut())
    deps.counters.started++
    this.returned = this.#call()
  }

  /** Nothing may be done in its name any more. */
  get over(): boolean {
    return this.#over
  }

  get effect(): Effect<Tx> {
    const { deps, message, delivery } = this
    this.#effect ??= effect<Tx>({
      queue: deps.queue.name,
      message,
      delivery,
      transport: deps.transport,
      inbox: deps.inbox,
      leaseMs: leaseMsOf(deps.queue),
      leaseOver: () => deps.leaseOver(delivery),
      forbidden: () => this.#forbidden(),
    })
    return this.#effect
  }

  get effectState(): EffectState {
    return this.#effect?.state ?? 'unused'
  }

  get looseEnds(): LooseEnds {
    this.#looseEnds ??= looseEnds()
    return this.#looseEnds
  }

  /** The claim is gone: the handler is told, its outcome no longer counts. */
  readonly lose = (): void => {
    if (this.#over || this.abort.reason instanceof LeaseLost) return
    this.abort.abort(new LeaseLost(this.names))
    this.#timer()
    this.#timer = this.deps.clock.after(GRACE_MS, () => this.#abandon({ kind: 'lost' }))
  }

  /** The process ends: the handler is told and the message given back. */
  shutDown(): void {
    if (this.#over) return
    const fields = this.names
    this.abort.abort(
      new MillraceError('MILLRACE_SHUTTING_DOWN', 'the worker is shutting down', { fields }),
    )
    this.#end({ kind: 'interrupted' })
  }

  get names(): { readonly queue: string; readonly messageId: string; readonly attempt: number } {
    const { deps, message } = this
    return { queue: deps.queue.name, messageId: message.id, attempt: message.attempt }
  }

  async #call(): Promise<void> {
    let outcome = succeeded
    try {
      await this.deps.handler(this.message, handlerContext(this))
    } catch (error) {
      outcome = { kind: 'failed', error }
    }
    if (this.#looseEnds !== undefined) outcome = await this.#tie(this.#looseEnds, outcome)
    this.#end(this.abort.aborted ? endOfAborted(outcome, this.abort.reason) : outcome)
  }

  /** What the handler left behind is its own: a message must not be acked though its effect was not committed. */
  async #tie(ends: LooseEnds, outcome: RunEnd): Promise<RunEnd> {
    const failure = await ends.tied()
    if (failure === undefined) return outcome
    if (this.#over) {
      this.deps.logger.error(
        `queue "${this.deps.queue.name}": what the handler of message ${this.message.id} had not awaited failed after the attempt had ended`,
        { ...this.names, cause: failure.error },
      )
    }
    return outcome.kind === 'succeeded' ? { kind: 'failed', error: failure.error } : outcome
  }

  #end(outcome: RunEnd): void {
    if (this.#over) return
    this.#over = true
    this.#timer()
    this.#finish(outcome)
  }

  #timeOut(): void {
    const error = new HandlerTimeout(this.names, this.deps.queue.handlerTimeoutMs)
    this.abort.abort(error)
    this.#timer = this.deps.clock.after(GRACE_MS, () => this.#abandon({ kind: 'failed', error }))
  }

  /** The handler did not stop though told to: its slot is freed, its late result ignored and counted. */
  #abandon(outcome: RunEnd): void {
    if (this.#over) return
    const { counters, logger, queue } = this.deps
    counters.abandoned++
    void this.returned.finally(() => void counters.abandoned--)
    logger.error(
      `queue "${queue.name}": the handler of message ${this.message.id} did not stop when its signal fired; its slot is freed while it still runs`,
      this.names,
    )
    this.#end(outcome)
  }

  #forbidden(): MillraceError | undefined {
    if (!this.#over && !this.abort.aborted) return undefined
    return forbiddenError(this.abort.reason, this.names)
  }
}
