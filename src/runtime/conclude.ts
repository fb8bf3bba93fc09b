import type { RunOutcome, Ticket } from '../flow/queue-flow.ts'
import { type BrokenClassify, classifyError } from '../model/classify-error.ts'
import type { Delivery } from '../model/delivery.ts'
import { describeError } from '../model/describe-error.ts'
import type { AttemptRecord } from '../model/history.ts'
import { afterFailure } from '../model/retry.ts'
import type { EffectState } from './effect.ts'
import type { Gatherer } from './gatherer.ts'
import type { RunEnd } from './run.ts'
import { type DeadReason, settlements } from './settlements.ts'
import type { Settler } from './settler.ts'
import { tally } from './tally.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** Turns the end of a run into a settlement, and the settlement into counters, logs and the dead-letter hook. */
export interface Conclude {
  /** `done` is called once, when all of it is over. */
  run(ended: Ended, done: () => void): void
  /** A key that the inbox knew: acked without a run. */
  duplicate(delivery: Delivery): Promise<void>
  /** Without a ticket: the handler never ran. */
  failure(delivery: Delivery, error: unknown, ticket?: Ticket): Promise<void>
  /** Given back without blame. */
  giveBack(delivery: Delivery, delayMs: number): Promise<void>
  dead(delivery: Delivery, why: DeadReason): Promise<void>
}

/** A run whose outcome is decided. */
export interface Ended {
  readonly delivery: Delivery
  readonly key: string
  readonly end: RunEnd
  readonly effect: EffectState
  /** When the effect began; see `Departures`. */
  readonly mark: number
  readonly ticket: Ticket
}

/** An inbox that is away now will hardly be back at once. */
const RECORD_FAILED_DELAY_MS = 1_000

export function conclude<Tx>(
  deps: WorkerDeps<Tx>,
  settler: Settler,
  records: Gatherer<string, void>,
  ended: AbortSignal,
): Conclude {
  const { queue, counters, clock } = deps
  const { acked, ack, ackThen, release, giveBack, dead } = settlements(deps, settler)

  const onBroken = warnOfClassify(deps)
  const warnIfFailed = warnOfFailed(deps, ended)
  const failure: Conclude['failure'] = (delivery, error, ticket) => {
    const now = clock.now()
    const classification = classifyError(error, queue.classify, now, onBroken)
    const instead = deps.flow.concluded({ as: 'failed', ...classification }, ticket)
    if (instead !== undefined) return giveBack(delivery, instead.delayMs)
    const attempt = describeError(error, { at: now, classification })
    const { history } = delivery
    const { retry } = queue
    const plan = afterFailure({ classification, history, retry, now, random: deps.random })
    if (plan.as === 'dead') {
      const reason = `${firstLine(attempt.message)} (${plan.reason})`
      return dead(delivery, { errorClass: plan.errorClass, reason, attempt })
    }
    sayRetry(deps, delivery, attempt, plan.delayMs)
    return release({ ...plan, delivery, attempt })
  }

  /** Of a run that did not record its key itself. */
  const recordAndAck = async ({ delivery, key }: Ended): Promise<void> => {
    try {
      await records.add(key)
    } catch (cause) {
      sayUnrecorded(deps, delivery, cause)
      return giveBack(delivery, RECORD_FAILED_DELAY_MS)
    }
    await ack(delivery)
  }

  const duplicate: Conclude['duplicate'] = (delivery) => {
    counters.duplicates++
    return ack(delivery)
  }

  /** Undefined when there was nothing to wait for. */
  const unusual = (ended: Ended): Promise<void> | undefined => {
    const { delivery, end, effect, ticket } = ended
    if (effect === 'acked') {
      acked(ended.mark)
      warnIfFailed(delivery, end)
      return
    }
    if (effect === 'committed') {
      warnIfFailed(delivery, end)
      return ack(delivery)
    }
    if (effect === 'duplicate') return duplicate(delivery)
    if (effect === 'lost' || end.kind === 'lost') {
      counters.lost++
      return
    }
    if (end.kind === 'interrupted') return giveBack(delivery, 0)
    if (end.kind === 'failed') return failure(delivery, end.error, ticket)
    const isRecorded = effect !== 'unused' && effect !== 'failed'
    return deps.inbox === undefined || isRecorded ? ack(delivery) : recordAndAck(ended)
  }

  return {
    duplicate,
    failure,
    giveBack,
    dead,
    run: (ended, done) => {
      const { end, effect } = ended
      try {
        const outcome = outcomeOf(end, effect)
        if (outcome !== undefined) deps.flow.concluded(outcome, ended.ticket)
        const isUsual = deps.inbox === undefined && effect === 'unused' && end.kind === 'succeeded'
        if (isUsual) return ackThen(ended.delivery, done)
        const concluding = unusual(ended)
        if (concluding === undefined) return done()
        concluding.catch((cause: unknown) => sayBroken(deps, ended.delivery, cause)).finally(done)
      } catch (cause) {
        sayBroken(deps, ended.delivery, cause)
        done()
      }
    },
  }
}

/** A settlement that came to no end at all: one of our own mistakes. */
export function sayBroken<Tx>(
  { queue, logger }: WorkerDeps<Tx>,
  delivery: Delivery,
  cause: unknown,
): void {
  logger.error(`queue "${queue.name}": settling message ${delivery.envelope.id} failed`, {
    queue: queue.name,
    cause,
  })
}

function sayUnrecorded<Tx>(
  { queue, logger }: WorkerDeps<Tx>,
  { envelope }: Delivery,
  cause: unknown,
): void {
  logger.error(
    `queue "${queue.name}": the key of message ${envelope.id} could not be recorded; the message is given back`,
    { queue: queue.name, messageId: envelope.id, cause },
  )
}

function sayRetry<Tx>(
  { queue, logger }: WorkerDeps<Tx>,
  { envelope }: Delivery,
  { errorClass, code, message }: AttemptRecord,
  delayMs: number,
): void {
  const why = `${errorClass}: ${code}: ${firstLine(message)}`
  logger.debug(
    `queue "${queue.name}": message ${envelope.id} is tried again in ${delayMs} ms (${why})`,
    { queue: queue.name, messageId: envelope.id, errorClass, code, delayMs },
  )
}

/** Undefined for a failure, which is told with its class. What a run did counts, whatever its handler answered. */
function outcomeOf(end: RunEnd, effect: EffectState): RunOutcome | undefined {
  if (effect === 'acked' || effect === 'committed') return SUCCEEDED
  if (effect === 'duplicate' || effect === 'lost') return UNDECIDED
  if (end.kind === 'failed') return undefined
  return end.kind === 'succeeded' ? SUCCEEDED : UNDECIDED
}

const SUCCEEDED: RunOutcome = { as: 'succeeded' }
const UNDECIDED: RunOutcome = { as: 'undecided' }

/** Once for each kind: it would be as many lines as failures. */
function warnOfClassify<Tx>({ queue, logger }: WorkerDeps<Tx>): (broken: BrokenClassify) => void {
  const said = new Set<BrokenClassify['kind']>()
  return ({ kind, what }) => {
    if (said.has(kind)) return
    said.add(kind)
    logger.warn(
      `queue "${queue.name}": its classify ${what} and is ignored, the built-in rules decide; expected ` +
        '{ errorClass: "transient", "permanent" or "throttled" } or undefined (said once)',
      { queue: queue.name },
    )
  }
}

/** Of a handler that fails after `ctx.tx`, which may be each time. */
function warnOfFailed<Tx>(
  deps: WorkerDeps<Tx>,
  ended: AbortSignal,
): (delivery: Delivery, end: RunEnd) => void {
  const { queue, clock, logger } = deps
  let last: { readonly messageId: string; readonly error: unknown } | undefined
  const told = tally(
    () => clock.now(),
    (count) => {
      if (last === undefined) return
      const { messageId, error } = last
      const classification = classifyError(error, queue.classify, clock.now())
      const { code, message } = describeError(error, { at: clock.now(), classification })
      const what =
        count === 1
          ? `the handler of message ${messageId} failed after its effect was committed; the message is acked`
          : `${count} handlers failed after their effects were committed, the last one that of message ${messageId}; the messages are acked`
      const fields = { queue: queue.name, messageId, code, count }
      logger.warn(`queue "${queue.name}": ${what} (${message})`, fields)
    },
    ended,
  )
  return ({ envelope }, end) => {
    if (end.kind !== 'failed') return
    last = { messageId: envelope.id, error: end.error }
    told(1)
  }
}

function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').slice(0, 500)
}
