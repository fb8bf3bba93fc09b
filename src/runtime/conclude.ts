import { deadLetterView } from '../admin/views.ts'
import { classifyError } from '../model/classify-error.ts'
import type { Delivery, Settlement } from '../model/delivery.ts'
import { describeError } from '../model/describe-error.ts'
import { type AttemptRecord, afterRelease, type ErrorClass } from '../model/history.ts'
import { afterFailure } from '../model/retry.ts'
import type { EffectState } from './effect.ts'
import type { Gatherer } from './gatherer.ts'
import type { RunEnd } from './run.ts'
import type { SettleOutcome, Settler } from './settler.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** Turns the end of a run into a settlement, and the settlement into counters, logs and the dead-letter hook. */
export interface Conclude {
  run(delivery: Delivery, key: string, end: RunEnd, effect: EffectState): Promise<void>
  /** A key that the inbox knew: acked without a run. */
  duplicate(delivery: Delivery): Promise<void>
  failure(delivery: Delivery, error: unknown): Promise<void>
  /** Given back without blame. */
  giveBack(delivery: Delivery, delayMs: number): Promise<void>
  dead(delivery: Delivery, why: DeadReason): Promise<void>
}

export interface DeadReason {
  readonly errorClass: ErrorClass
  readonly reason: string
  readonly attempt?: AttemptRecord
}

/** An inbox that is away now will hardly be back at once. */
const RECORD_FAILED_DELAY_MS = 1_000

export function conclude<Tx>(
  deps: WorkerDeps<Tx>,
  settler: Settler,
  records: Gatherer<string, void>,
): Conclude {
  const { queue, counters, logger, clock } = deps

  const settle = async (settlement: Settlement, onSettled: () => void): Promise<void> => {
    const outcome = await settler.settle(settlement)
    if (outcome.kind === 'settled') onSettled()
    else reportUnsettled(deps, settlement, outcome)
  }
  const acked = (): void => {
    counters.acked++
    deps.drain.note(1)
  }
  const ack = (delivery: Delivery): Promise<void> => settle({ as: 'acked', delivery }, acked)
  const release = (settlement: Settlement & { as: 'released' }): Promise<void> =>
    settle(settlement, () => void counters.released++)

  const dead: Conclude['dead'] = (delivery, why) =>
    settle({ as: 'dead', delivery, ...why }, () => {
      counters.dead++
      deps.drain.note(1)
      announceDead(deps, delivery, why)
    })

  const failure: Conclude['failure'] = (delivery, error) => {
    const now = clock.now()
    const classification = classifyError(error, queue.classify, now)
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
    logger.debug(`queue "${queue.name}": message ${delivery.envelope.id} will be tried again`, {
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

  const giveBack: Conclude['giveBack'] = (delivery, delayMs) =>
    release({ as: 'released', delivery, delayMs, counted: false })

  const duplicate: Conclude['duplicate'] = (delivery) => {
    counters.duplicates++
    return ack(delivery)
  }

  return {
    duplicate,
    failure,
    giveBack,
    dead,
    run: async (delivery, key, end, effect) => {
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
      if (end.kind === 'failed') return failure(delivery, end.error)
      return success(delivery, key, effect)
    },
  }
}

function reportUnsettled<Tx>(
  deps: WorkerDeps<Tx>,
  settlement: Settlement,
  outcome: Exclude<SettleOutcome, { kind: 'settled' }>,
): void {
  const { queue, counters, logger } = deps
  const fields = {
    queue: queue.name,
    messageId: settlement.delivery.envelope.id,
    as: settlement.as,
  }
  if (outcome.kind === 'lost') {
    counters.lost++
    logger.warn(
      `queue "${queue.name}": message ${fields.messageId} was no longer ours when it was to be ${settlement.as}`,
      fields,
    )
    return
  }
  logger.error(
    `queue "${queue.name}": message ${fields.messageId} could not be ${settlement.as} (${outcome.fault.code}); it comes back when its lease ends`,
    { ...fields, cause: outcome.fault.cause },
  )
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

function announceDead<Tx>(deps: WorkerDeps<Tx>, delivery: Delivery, why: DeadReason): void {
  const { queue } = deps
  const view = deadLetterView(queue, {
    envelope: delivery.envelope,
    queue: queue.name,
    owner: queue.owner,
    errorClass: why.errorClass,
    reason: why.reason,
    history: why.attempt
      ? afterRelease(delivery.history, { counted: true, attempt: why.attempt })
      : delivery.history,
    sentAt: delivery.sentAt,
    deadAt: deps.clock.now(),
  })
  deps.logger.error(
    `queue "${queue.name}": message ${view.id} is dead (${why.errorClass}): ${why.reason}; owner: ${queue.owner}`,
    { queue: queue.name, messageId: view.id, errorClass: why.errorClass, owner: queue.owner },
  )
  deps.onDead(view)
}

function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').slice(0, 500)
}
