import { AsyncLocalStorage } from 'node:async_hooks'
import { asyncEffectRefused, isAsyncFunction } from '../inbox/async-effect.ts'
import type { Inbox, InboxOutcome } from '../inbox/inbox.ts'
import type { Delivery } from '../model/delivery.ts'
import { isMillraceError, MillraceError, OptionsError } from '../model/errors.ts'
import { chain, isPromise, type MaybePromise } from '../model/maybe-promise.ts'
import { show } from '../model/problems.ts'
import type { Transport } from '../transport/transport.ts'
import type { Message } from './message.ts'
import type { SendResult } from './send.ts'

/** What became of `ctx.tx` in one run. */
export type EffectState =
  | 'unused'
  | 'open'
  | 'failed'
  /** Effect and key are committed; the ack is still to be told (another database). */
  | 'committed'
  /** Effect, key and ack committed together. */
  | 'acked'
  /** Another run had committed this key. */
  | 'duplicate'
  | 'lost'

/** The one transaction of a run. */
export interface Effect<Tx> {
  readonly state: EffectState
  /** Taken before it began. */
  readonly mark: number
  run<T>(effect: (tx: Tx) => MaybePromise<T>): Promise<T>
  /** True in code that the transaction of this run left behind: what it sends could not commit with it any more. */
  isOver(): boolean
  /** A send from inside the open transaction: it must be done before the commit. */
  join(send: (tx: unknown) => MaybePromise<SendResult>): MaybePromise<SendResult>
  /** True in code that the open transaction of this run called. */
  isInside(): boolean
}

export interface EffectOptions<Tx> {
  readonly queue: string
  readonly message: Message<unknown>
  readonly delivery: Delivery
  readonly transport: Transport
  readonly inbox: Inbox<Tx> | undefined
  readonly leaseMs: number
  /** By our clock the lease has ended, whether anybody has told us or not. */
  readonly leaseOver: () => boolean
  /** Why this run may not commit any more; undefined while it may. */
  readonly forbidden: () => MillraceError | undefined
  /** See `Departures`. */
  readonly mark: number
}

/** Which run's transaction the code that runs now is inside of. */
const inside = new AsyncLocalStorage<OpenTransaction>()

interface OpenTransaction {
  readonly owner: object
  readonly tx: unknown
  sends: MaybePromise<SendResult>[]
  failure: { readonly error: unknown } | undefined
  closed: boolean
}

export function effect<Tx>(options: EffectOptions<Tx>): Effect<Tx> {
  const owner = {}
  let state: EffectState = 'unused'

  const run = async <T>(work: (tx: Tx) => MaybePromise<T>): Promise<T> => {
    const inbox = requireInbox(options, state)
    if (typeof work !== 'function') throw noFunction(options, work)
    if (inbox.effects === 'sync' && isAsyncFunction(work)) throw asyncEffectRefused()
    state = 'open'
    try {
      const outcome = await inbox.run(
        { queue: options.queue, key: options.message.idempotencyKey },
        {
          leaseMs: options.leaseMs,
          isOver: () => options.forbidden() !== undefined,
          effect: (tx) => runInside(newOpen(owner, tx), () => work(tx)),
          last: (tx) => lastStatements(options, inbox, tx),
        },
      )
      state = isOverForUs(outcome, options) ? 'failed' : stateOf(outcome, joins(options, inbox))
      return committedValue(outcome, options)
    } catch (error) {
      if (state !== 'open') throw error
      const lost = lostMeanwhile(options, error)
      state = lost === undefined ? 'failed' : 'lost'
      throw lost ?? error
    }
  }

  return {
    get state() {
      return state
    },
    mark: options.mark,
    run,
    isOver: () => {
      const open = inside.getStore()
      return open?.owner === owner && open.closed
    },
    isInside: () => inside.getStore()?.owner === owner,
    join: (send) => {
      const open = inside.getStore()
      if (open?.owner !== owner) throw new Error('not inside the transaction of this run')
      try {
        const sent = send(open.tx)
        if (isPromise(sent)) {
          sent.catch((error: unknown) => {
            open.failure ??= { error }
          })
        }
        open.sends.push(sent)
        return sent
      } catch (error) {
        open.failure ??= { error }
        throw error
      }
    },
  }
}

function newOpen(owner: object, tx: unknown): OpenTransaction {
  return { owner, tx, sends: [], failure: undefined, closed: false }
}

/** Runs the effect, then waits for the sends that joined: what was not stored must not be committed without. */
function runInside<T>(open: OpenTransaction, work: () => MaybePromise<T>): MaybePromise<T> {
  const fail = (error: unknown): never => {
    open.closed = true
    throw error
  }
  try {
    const done = chain(inside.run(open, work), (value) => chain(allSent(open), () => value))
    return isPromise(done) ? done.catch(fail) : done
  } catch (error) {
    return fail(error)
  }
}

/** Closed in the turn in which nothing waits any more, so that no send slips in after it was looked. */
function allSent(open: OpenTransaction): MaybePromise<void> {
  if (open.failure !== undefined) throw open.failure.error
  const waiting = open.sends.filter(isPromise)
  open.sends = []
  if (waiting.length > 0) return Promise.allSettled(waiting).then(() => allSent(open))
  open.closed = true
}

function requireInbox<Tx>(options: EffectOptions<Tx>, state: EffectState): Inbox<Tx> {
  const fields = { queue: options.queue, messageId: options.message.id }
  if (options.inbox === undefined) {
    throw new MillraceError(
      'MILLRACE_INBOX_REQUIRED',
      `queue "${options.queue}": ctx.tx needs an inbox; give createMillrace({ inbox: postgresInbox(…) or sqliteInbox(…) })`,
      { fields },
    )
  }
  if (state !== 'unused') {
    throw new MillraceError(
      'MILLRACE_TX_ONCE',
      `queue "${options.queue}": ctx.tx was called twice in one attempt; put everything into one call, because only one can commit with the key`,
      { fields },
    )
  }
  const forbidden = options.forbidden()
  if (forbidden !== undefined) throw forbidden
  return options.inbox
}

function noFunction<Tx>({ queue }: EffectOptions<Tx>, given: unknown): OptionsError {
  return new OptionsError(`queue "${queue}": ctx.tx`, [`expected a function, got ${show(given)}`])
}

function joins<Tx>(options: EffectOptions<Tx>, inbox: Inbox<Tx>): boolean {
  const { transport } = options
  return transport.transaction !== undefined && transport.databaseId === inbox.databaseId
}

/** The fence and, in the same database, the ack. */
function lastStatements<Tx>(
  options: EffectOptions<Tx>,
  inbox: Inbox<Tx>,
  tx: Tx,
): MaybePromise<boolean> {
  if (options.forbidden() !== undefined) return false
  // Another database cannot ask whose message it is; our own clock is the best that we have.
  if (!joins(options, inbox)) return !options.leaseOver()
  return chain(options.transport.transaction?.(tx), (transaction) => {
    if (transaction === undefined) {
      throw new MillraceError(
        'MILLRACE_BACKEND_FAULT',
        `queue "${options.queue}": the inbox's transaction is not one of transport ${options.transport.name}, though both name one database`,
      )
    }
    return chain(transaction.ack(options.queue, [options.delivery]), ([first]) => {
      if (first?.ok === false && first.fault.code !== 'lost') {
        throw new MillraceError(
          'MILLRACE_BACKEND_FAULT',
          `queue "${options.queue}": the ack inside ctx.tx failed with "${first.fault.code}"`,
          { cause: first.fault.cause, retryable: first.fault.retryable },
        )
      }
      return first?.ok === true
    })
  })
}

function stateOf(outcome: InboxOutcome<unknown>, joined: boolean): EffectState {
  if (outcome.kind === 'committed') return joined ? 'acked' : 'committed'
  return outcome.kind
}

/**
 * Nothing was committed because the time of the run was over or the worker ends. The message is ours all the same, and has to be
 * settled: nobody takes back what a session holds.
 */
function isOverForUs<Tx>(outcome: InboxOutcome<unknown>, options: EffectOptions<Tx>): boolean {
  if (outcome.kind !== 'lost') return false
  const forbidden = options.forbidden()
  return forbidden !== undefined && forbidden.code !== 'MILLRACE_LEASE_LOST'
}

/**
 * A process that was stopped in its effect wakes up with a connection that the server has ended, or a statement that it
 * refuses; that says less than what it means.
 */
function lostMeanwhile<Tx>(options: EffectOptions<Tx>, cause: unknown): MillraceError | undefined {
  if (isMillraceError(cause)) return undefined
  const forbidden = options.forbidden()
  if (forbidden?.code !== 'MILLRACE_LEASE_LOST' && !options.leaseOver()) return undefined
  return leaseLost(options, cause)
}

function leaseLost<Tx>({ queue, message }: EffectOptions<Tx>, cause?: unknown): MillraceError {
  return new MillraceError(
    'MILLRACE_LEASE_LOST',
    `queue "${queue}": message ${message.id} is no longer ours, nothing was committed; it is handled elsewhere`,
    { cause, fields: { queue, messageId: message.id } },
  )
}

function committedValue<T, Tx>(outcome: InboxOutcome<T>, options: EffectOptions<Tx>): T {
  if (outcome.kind === 'committed') return outcome.value
  const fields = { queue: options.queue, messageId: options.message.id }
  if (outcome.kind === 'lost') throw options.forbidden() ?? leaseLost(options)
  throw new MillraceError(
    'MILLRACE_DUPLICATE',
    `queue "${options.queue}": key "${options.message.idempotencyKey}" was handled by another run, nothing was committed twice; the message is acked`,
    { fields },
  )
}
