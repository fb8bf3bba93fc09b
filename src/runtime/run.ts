import type { Ticket } from '../flow/queue-flow.ts'
import type { Cancel } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import { MillraceError } from '../model/errors.ts'
import { LazyAbort } from '../model/lazy-abort.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import { type Effect, type EffectState, effect } from './effect.ts'
import { handlerContext } from './handler-context.ts'
import { type LooseEnds, looseEnds } from './loose-ends.ts'
import type { Message } from './message.ts'
import { endOfAborted, forbiddenError, HandlerTimeout, LeaseLost, SlotLost } from './run-errors.ts'
import { GRACE_MS, leaseMsOf, type WorkerDeps } from './worker-deps.ts'

export type RunEnd =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** Given back without blame. */
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'lost' }

export interface RunDeps<Tx> extends WorkerDeps<Tx> {
  /** See `Hands.isOver`. */
  readonly isOver: (delivery: Delivery) => boolean
  /** Of the handler's time; they call `timeOut`. */
  readonly deadlines: Deadlines
  /** The outcome is decided. */
  readonly onEnd: (run: Run<Tx>, end: RunEnd) => void
  /** The handler itself returned, which may be after the end. */
  readonly onReturned: () => void
}

const succeeded: RunEnd = { kind: 'succeeded' }

/**
 * One run of a handler, from its start to the moment when its outcome is decided. A class, because every message has
 * one and most need little of it: what a run may need later is made when it is needed (see LazyAbort).
 */
export class Run<Tx = unknown> {
  readonly delivery: Delivery
  readonly message: Message<unknown>
  readonly ticket: Ticket
  readonly abort: LazyAbort = new LazyAbort()
  readonly deps: RunDeps<Tx>
  readonly #judgedMs: number
  #over = false
  #abandoned = false
  #deadline: Deadline | undefined
  /** Of the grace, once its signal has fired. */
  #grace: Cancel | undefined
  #effect: Effect<Tx> | undefined
  #looseEnds: LooseEnds | undefined

  /** @param judgedMs what the schema took of the attempt's time */
  constructor(
    deps: RunDeps<Tx>,
    delivery: Delivery,
    message: Message<unknown>,
    ticket: Ticket,
    judgedMs: number,
  ) {
    this.deps = deps
    this.delivery = delivery
    this.message = message
    this.ticket = ticket
    this.#judgedMs = judgedMs
  }

  /** Calls the handler, in the async context of the caller. A synchronous one has ended when this returns. */
  start(): void {
    const { deps } = this
    deps.counters.started++
    this.ticket.slot?.whenLost(this.loseSlot)
    let answer: unknown
    try {
      answer = deps.handler(this.message, handlerContext(this))
    } catch (error) {
      this.#returned({ kind: 'failed', error })
      return
    }
    if (typeof answer === 'object' && answer !== null) this.#follow(answer)
    else this.#returned(succeeded)
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
      leaseOver: () => deps.isOver(delivery),
      forbidden: () => this.#forbidden(),
      mark: deps.departures.mark(),
    })
    return this.#effect
  }

  get effectState(): EffectState {
    return this.#effect?.state ?? 'unused'
  }

  get effectMark(): number {
    return this.#effect?.mark ?? 0
  }

  get looseEnds(): LooseEnds {
    this.#looseEnds ??= looseEnds()
    return this.#looseEnds
  }

  /** The claim is gone: the handler is told, its outcome no longer counts. */
  readonly lose = (): void => {
    if (this.#over || this.abort.reason instanceof LeaseLost) return
    this.abort.abort(new LeaseLost(this.names))
    this.#allowGrace({ kind: 'lost' })
  }

  /** Another message may run in its place: the handler is told, and the message given back. */
  readonly loseSlot = (): void => {
    if (this.#over || this.abort.aborted) return
    const error = new SlotLost(this.names)
    this.deps.logger.warn(error.message, this.names)
    this.abort.abort(error)
    this.#allowGrace({ kind: 'interrupted' })
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

  /** Of those whose time is over with this deadline. */
  timeOut(deadline: Deadline): void {
    if (this.#deadline !== deadline) return
    const error = new HandlerTimeout(this.names, this.deps.queue.handlerTimeoutMs)
    this.abort.abort(error)
    this.#allowGrace({ kind: 'failed', error })
  }

  get names(): { readonly queue: string; readonly messageId: string; readonly attempt: number } {
    const { deps, message } = this
    return { queue: deps.queue.name, messageId: message.id, attempt: message.attempt }
  }

  /** Of a handler that may take its time. */
  #follow(answer: object): void {
    this.#limit()
    Promise.resolve(answer).then(
      () => this.#returned(succeeded),
      (error: unknown) => this.#returned({ kind: 'failed', error }),
    )
  }

  /** Its time is limited while it may still become over by itself. */
  #limit(): void {
    if (this.#over || this.#grace !== undefined) return
    this.#deadline ??= this.deps.deadlines.join(this.ticket.at - this.#judgedMs)
  }

  #returned(outcome: RunEnd): void {
    if (this.#looseEnds === undefined) {
      this.#conclude(outcome)
      return
    }
    this.#limit()
    void this.#tie(this.#looseEnds, outcome).then((tied) => this.#conclude(tied))
  }

  #conclude(outcome: RunEnd): void {
    this.#end(this.abort.aborted ? endOfAborted(outcome, this.abort.reason) : outcome)
    if (this.#abandoned) this.deps.counters.abandoned--
    this.deps.onReturned()
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
    this.#stopTimers()
    this.deps.onEnd(this, outcome)
  }

  #stopTimers(): void {
    if (this.#deadline !== undefined) this.deps.deadlines.leave(this.#deadline)
    this.#deadline = undefined
    this.#grace?.()
  }

  /** Its signal has fired. */
  #allowGrace(outcome: RunEnd): void {
    this.#stopTimers()
    this.#grace = this.deps.clock.after(GRACE_MS, () => this.#abandon(outcome))
  }

  /** The handler did not stop though told to: its slot is freed, its late result ignored and counted. */
  #abandon(outcome: RunEnd): void {
    if (this.#over) return
    const { counters, logger, queue } = this.deps
    counters.abandoned++
    this.#abandoned = true
    logger.error(
      `queue "${queue.name}": the handler of message ${this.message.id} did not stop when its signal fired; its slot is freed while it still runs`,
      this.names,
    )
    this.#end(outcome)
  }

  #forbidden(): MillraceError | undefined {
    // A process that was stopped gets here before the timer that would have told it.
    if (this.ticket.slot?.isOver() === true) this.loseSlot()
    if (!this.#over && !this.abort.aborted) return undefined
    return forbiddenError(this.abort.reason, this.names)
  }
}
