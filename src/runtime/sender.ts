import type { Clock } from '../model/clock.ts'
import type { Envelope } from '../model/envelope.ts'
import { MillraceError } from '../model/errors.ts'
import { chain, isPromise, type MaybePromise } from '../model/maybe-promise.ts'
import { isSignal, problems, show } from '../model/problems.ts'
import { untilAborted } from '../model/until-aborted.ts'
import { isSqliteHandle } from '../sql/sqlite-handle.ts'
import type { Admission } from './admission.ts'
import { backendSends } from './backend-sends.ts'
import type { HeldLine } from './held-line.ts'
import { type PrepareContext, prepare } from './prepare.ts'
import type { AnyQueue } from './queue.ts'
import type { SendOptions, SendResult } from './send.ts'
import { checkSendOptions, SEND_OPTIONS } from './send-options.ts'
import { batchResults, type ResultContext, resultOf } from './send-result.ts'
import type { SendsUnderWay } from './sends-under-way.ts'
import type { TransactionSends } from './transaction-sends.ts'

/** Sends to one queue. */
export interface Sender {
  /** Both throw at once and answer at once when everything is synchronous, as inside a SQLite transaction. */
  sendNow(payload: unknown, options?: SendOptions): MaybePromise<SendResult>
  sendBatch(
    payloads: readonly unknown[],
    options?: BatchSendOptions<never>,
  ): MaybePromise<readonly SendResult[]>
}

/** Options of a batch; keys belong to one message, so a batch gives them by a function. */
export type BatchSendOptions<In = unknown> = Omit<
  SendOptions,
  'id' | 'idempotencyKey' | 'dedupeKey'
> & {
  readonly idempotencyKey?: (payload: In, index: number) => string | undefined
  readonly dedupeKey?: (payload: In, index: number) => string | undefined
}

export interface SenderOptions extends ResultContext {
  readonly clock: Clock
  readonly held: HeldLine
  readonly transactions: TransactionSends
  readonly admission: Admission
  readonly prepare: PrepareContext
  readonly underWay: SendsUnderWay
  /** Fires when the app is closed: sends that wait give up. */
  readonly closed: AbortSignal
}

export function sender(options: SenderOptions): Sender {
  const { queue, closed } = options
  const backend = backendSends({ ...options, queue: queue.name })

  /**
   * Within a transaction nothing is waited for: the user commits one of SQLite as soon as this call returns, and those of Postgres may
   * hold every connection of the pool, so that a look at the queue would wait for them, and they for it.
   */
  const admit = (messages: number, priority: number, tx: unknown): MaybePromise<void> => {
    const { admission } = options
    const asked = { messages, priority, onTheWay: backend.size }
    return tx === undefined ? admission.admit(asked) : admission.admitNow(asked)
  }

  /** An asynchronous schema that never answers holds up its caller no longer than he wants to wait, or the app is there. */
  const asked = <T>(
    prepared: MaybePromise<T>,
    send: { readonly tx?: unknown; readonly signal?: AbortSignal } | undefined,
  ): MaybePromise<T> => {
    const inTurn = inTime(prepared, queue, send?.tx)
    if (!isPromise(inTurn)) return inTurn
    return untilAborted(inTurn, send?.signal === undefined ? [closed] : [send.signal, closed])
  }

  const sendOne = (
    payload: unknown,
    send: SendOptions | undefined,
    held: () => void,
  ): MaybePromise<SendResult> => {
    throwIfEnded(closed, send?.signal)
    const prepared = asked(prepare(queue, payload, send, options.prepare), send)
    return chain(prepared, (envelope) =>
      chain(admit(1, envelope.priority, send?.tx), () => {
        const sent =
          send?.tx === undefined
            ? orAborted(() => backend.one(envelope, send?.signal, held), send?.signal)
            : options.transactions.one(queue.name, send.tx, envelope)
        return chain(sent, (outcome) => resultOf(outcome, envelope, options))
      }),
    )
  }

  const sendMany = (
    payloads: readonly unknown[],
    send: BatchSendOptions<never> | undefined,
    held: () => void,
  ): MaybePromise<readonly SendResult[]> => {
    throwIfEnded(closed, send?.signal)
    checkBatch(payloads, options)
    if (payloads.length === 0) return []
    const prepared = asked(prepareBatch(payloads, send, options), send)
    return chain(prepared, (envelopes) =>
      chain(admit(envelopes.length, send?.priority ?? 0, send?.tx), () => {
        const sent =
          send?.tx === undefined
            ? backend.many(envelopes, send?.signal, held)
            : options.transactions.many(queue.name, send.tx, envelopes)
        return chain(sent, (outcomes) => batchResults(outcomes, envelopes, options))
      }),
    )
  }

  /** The end of the app waits for it, unless it waits for something itself that may take long. */
  const followed = <T>(work: (over: () => void) => MaybePromise<T>): MaybePromise<T> => {
    const over = options.underWay.begin()
    try {
      const sent = work(over)
      if (isPromise(sent)) sent.then(over, over)
      else over()
      return sent
    } catch (error) {
      over()
      throw error
    }
  }

  return {
    sendNow: (payload, send) => followed((over) => sendOne(payload, send, over)),
    sendBatch: (payloads, send) => followed((over) => sendMany(payloads, send, over)),
  }
}

/** What is no signal is named later, with everything else that is wrong with the options. */
function throwIfEnded(closed: AbortSignal, signal: AbortSignal | undefined): void {
  if (signal !== undefined && isSignal(signal)) signal.throwIfAborted()
  if (!closed.aborted) return
  throw new MillraceError('MILLRACE_CLOSED', 'the app is closed; make a new one to send')
}

/** Stops waiting when the caller's signal fires; what was on its way may still be stored. */
function orAborted<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return send()
  // It may have fired in the same turn in which an asynchronous schema answered.
  signal.throwIfAborted()
  return untilAborted(send(), [signal])
}

/** What an asynchronous schema lets through would come after the COMMIT of a synchronous transaction. */
function inTime<T>(prepared: MaybePromise<T>, queue: AnyQueue, tx: unknown): MaybePromise<T> {
  if (tx === undefined || !isPromise(prepared) || !isSqliteHandle(tx)) return prepared
  prepared.catch(() => undefined)
  throw new MillraceError(
    'MILLRACE_TX_ASYNC',
    `the schema of queue "${queue.name}" is asynchronous, so a message cannot be sent to it inside a SQLite transaction, ` +
      'which may commit before the schema has answered; nothing was sent, make the schema synchronous or send outside',
    { fields: { queue: queue.name } },
  )
}

/** Where a batch is sent in parts: all of it is held in memory. */
const BATCH_MAX = 10_000

function checkBatch(payloads: unknown, options: SenderOptions): void {
  const { atomicBatch, limits } = options.transport.traits
  const sendBatch = atomicBatch ? limits.sendBatch : BATCH_MAX
  const { capacity } = options.queue
  const found = problems(batchTo(options.queue))
  if (!Array.isArray(payloads)) {
    found.add(`payloads: expected an array, got ${show(payloads)}`)
  } else if (payloads.length > sendBatch) {
    found.add(
      `expected at most ${sendBatch} payloads${atomicBatch ? ' for all-or-nothing' : ''}, got ${payloads.length}; send several batches`,
    )
  } else if (capacity !== 'unbounded' && payloads.length > capacity.maxDepth) {
    found.add(
      `a batch of ${payloads.length} never fits maxDepth ${capacity.maxDepth} of the queue; send smaller batches`,
    )
  }
  found.throwIfAny()
}

function batchTo(queue: AnyQueue): string {
  return `sendBatch to queue "${queue.name}"`
}

function prepareBatch(
  payloads: readonly unknown[],
  send: BatchSendOptions<never> | undefined,
  options: SenderOptions,
): MaybePromise<readonly Envelope[]> {
  const { queue, prepare: context } = options
  if (send !== undefined) checkBatchOptions(send, queue)
  const { idempotencyKey, dedupeKey, ...same } = send ?? {}
  const shared = send === undefined ? undefined : same
  const checked = checkSendOptions(shared, queue.name, context.backend)
  const keyed = idempotencyKey !== undefined || dedupeKey !== undefined
  const one = (index: number): MaybePromise<Envelope> => {
    const payload = payloads[index]
    const again = index > 0
    if (!keyed) return prepare(queue, payload, shared, context, { index, checked, again })
    const keys = {
      ...keyOf('idempotencyKey', idempotencyKey?.(payload as never, index)),
      ...keyOf('dedupeKey', dedupeKey?.(payload as never, index)),
    }
    return prepare(queue, payload, { ...same, ...keys }, context, { index, again })
  }
  return manyOf(payloads.length, one)
}

/** Together when one has to wait, else at once. */
function manyOf<T>(count: number, one: (index: number) => MaybePromise<T>): MaybePromise<T[]> {
  const ready: T[] = []
  const waiting: MaybePromise<T>[] = []
  try {
    for (let index = 0; index < count; index += 1) {
      const made = one(index)
      if (waiting.length > 0) waiting.push(made)
      else if (isPromise(made)) waiting.push(...ready, made)
      else ready.push(made)
    }
  } catch (error) {
    // Nobody will ask those before it, and a rejection that nobody sees ends the process.
    Promise.all(waiting).catch(() => undefined)
    throw error
  }
  return waiting.length > 0 ? Promise.all(waiting) : ready
}

function checkBatchOptions(send: BatchSendOptions<never>, queue: AnyQueue): void {
  const found = problems(batchTo(queue))
  found.knownKeys(send, SEND_OPTIONS)
  if ('id' in send) found.add('id: belongs to one message; send that one by itself')
  for (const name of ['idempotencyKey', 'dedupeKey'] as const) {
    const give: unknown = send[name]
    if (give === undefined || typeof give === 'function') continue
    found.add(
      `${name}: expected a function of payload and index, because one key belongs to one message, got ${show(give)}`,
    )
  }
  found.throwIfAny()
}

function keyOf(name: 'idempotencyKey' | 'dedupeKey', key: unknown): SendOptions {
  return key === undefined ? {} : { [name]: key }
}
