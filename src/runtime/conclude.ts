import type { RunOutcome, Ticket } from '../flow/queue-flow.ts'
import { type BrokenClassify, classifyError } from '../model/classify-error.ts'
import type { Delivery } from '../model/delivery.ts'
import { describeError } from '../model/describe-error.ts'
import { afterFailure } from '../model/retry.ts'
import type { EffectState } from './effect.ts'
import type { Gatherer } from './gatherer.ts'
import type { RunEnd } from './run.ts'
import { type DeadReason, settlements } from './settlements.ts'
import type { Settler } from './settler.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** Turns the end of a run into a settlement, and the settlement into counters, logs and the dead-letter hook. */
export interface Conclude {
  run(
    delivery: Delivery,
    key: string,
    end: RunEnd,
    effect: EffectState,
    ticket: Ticket,
  ): Promise<void>
  /** A key that the inbox knew: acked without a run. */
  duplicate(delivery: Delivery): Promise<void>
  /** Without a ticket: the handler never ran. */
  failure(delivery: Delivery, error: unknown, ticket?: Ticket): Promise<void>
  /** Given back without blame. */
  giveBack(delivery: Delivery, delayMs: number): Promise<void>
  dead(delivery: Delivery, why: DeadReason): Promise<void>
}

/** An inbox that is away now will hardly be back at once. */
const RECORD_FAILED_DELAY_MS = 1_000

export function conclude<Tx>(
  deps: WorkerDeps<Tx>,
  settler: Settler,
  records: Gatherer<string, void>,
): Conclude {
  const { queue, counters, logger, clock } = deps
  const { acked, ack, release, giveBack, dead } = settlements(deps, settler)

  const onBroken = warnOfClassify(deps)
  const failure: Conclude['failure'] = (delivery, error, ticket) => {
    const now = clock.now()
    const classification = classifyError(error, queue.classify, now, onBroken)
    const instead = deps.flow.concluded({ as: 'failed', ...classification }, ticket)
    if (instead !== undefined) return giveBack(delivery, instead.delayMs)
    const attempt = describeError(error, { at: now, classification })
    const { history } = delivery
    const plan = afterFailure({
      classification,
      history,
      retry: queue.retry,
      now,
      random: deps.random,
    })
    if (plan.as === 'dead') {
      const { errorClass } = plan
      return dead(delivery, {
        errorClass,
        reason: `${firstLine(attempt.message)} (${plan.reason})`,
        attempt,
      })
    }
    const why = `${attempt.errorClass}: ${attempt.code}: ${firstLine(attempt.message)}`
    const text = `message ${delivery.envelope.id} is tried again in ${plan.delayMs} ms (${why})`
    logger.debug(`queue "${queue.name}": ${text}`, {
      queue: queue.name,
      messageId: delivery.envelope.id,
      errorClass: attempt.errorClass,
      code: attempt.code,
      delayMs: plan.delayMs,
    })
    return release({ ...plan, delivery, attempt })
  }

  const success = async (delivery: Delivery, key: string, effect: EffectState): Promise<void> => {
    if (deps.inbox !== undefined && (effect === 'unused' || effect === 'failed')) {
      try {
        await records.add(key)
      } catch (cause) {
        logger.error(
          `queue "${queue.name}": the key of message ${delivery.envelope.id} could not be recorded; the message is given back`,
          { queue: queue.name, messageId: delivery.envelope.id, cause },
        )
        return giveBack(delivery, RECORD_FAILED_DELAY_MS)
      }
    }
    await ack(delivery)
  }

  const duplicate: Conclude['duplicate'] = (delivery) => {
    counters.duplicates++
    return ack(delivery)
  }

  return {
    duplicate,
    failure,
    giveBack,
    dead,
    run: async (delivery, key, end, effect, ticket) => {
      const outcome = outcomeOf(end, effect)
      if (outcome !== undefined) deps.flow.concluded(outcome, ticket)
      if (effect === 'acked') {
        acked()
        return warnIfFailed(deps, delivery, end)
      }
      if (effect === 'committed') {
        warnIfFailed(deps, delivery, end)
        return ack(delivery)
      }
      if (effect === 'duplicate') return duplicate(delivery)
      if (effect === 'lost' || end.kind === 'lost') return void counters.lost++
      if (end.kind === 'interrupted') return giveBack(delivery, 0)
      if (end.kind === 'failed') return failure(delivery, end.error, ticket)
      return success(delivery, key, effect)
    },
  }
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

function warnIfFailed<Tx>(deps: WorkerDeps<Tx>, delivery: Delivery, end: RunEnd): void {
  if (end.kind !== 'failed') return
  const attempt = describeError(end.error, {
    at: deps.clock.now(),
    classification: classifyError(end.error, deps.queue.classify, deps.clock.now()),
  })
  deps.logger.warn(
    `queue "${deps.queue.name}": the handler of message ${delivery.envelope.id} failed after its effect was committed; the message is acked (${attempt.message})`,
    { queue: deps.queue.name, messageId: delivery.envelope.id, code: attempt.code },
  )
}

function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').slice(0, 500)
}
