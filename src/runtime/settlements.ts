import { deadLetterView } from '../admin/views.ts'
import { MAKE_AGAIN } from '../model/backend-error.ts'
import type { Delivery, FetchedBody, Released, Settlement } from '../model/delivery.ts'
import { type AttemptRecord, afterRelease, type ErrorClass } from '../model/history.ts'
import { untouched } from '../transport/settling.ts'
import type { SettleOutcome, Settler } from './settler.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** Settles, and counts and tells what came of it. */
export interface Settlements {
  /** Counts an ack that happened elsewhere: in the effect's transaction, which began at `mark`. */
  acked(mark: number): void
  ack(delivery: Delivery): Promise<void>
  /** The same without a promise: most messages end so. `done` is called once, never before this returns. */
  ackThen(delivery: Delivery, done: () => void): void
  release(settlement: Released): Promise<void>
  /** Given back without blame. */
  giveBack(delivery: Delivery, delayMs: number): Promise<void>
  dead(delivery: Delivery, why: DeadReason): Promise<void>
}

export interface DeadReason {
  readonly errorClass: ErrorClass
  readonly reason: string
  readonly attempt?: AttemptRecord
}

export function settlements<Tx>(deps: WorkerDeps<Tx>, settler: Settler): Settlements {
  const { counters, departures } = deps

  const settle = async (settlement: Settlement, onSettled: () => void): Promise<void> => {
    const outcome = await settler.settle(settlement)
    if (outcome.kind === 'settled') onSettled()
    else await unsettled(settlement, outcome)
  }
  /** What a session or an assignment holds has no lease that would end: kept back, it would take up room, and hold up its lane, for good. */
  const unsettled = async (settlement: Settlement, outcome: Unsettled): Promise<void> => {
    const { delivery } = settlement
    const isStuck = outcome.kind === 'failed' && deps.transport.traits.claim.kind !== 'lease'
    const isBack = isStuck && (await settler.settle(untouched(delivery))).kind === 'settled'
    reportUnsettled(deps, settlement, outcome, isBack)
  }
  const acked = (mark: number): void => {
    counters.acked++
    departures.left(1, mark)
  }
  const ack: Settlements['ack'] = (delivery) => {
    const mark = departures.mark()
    return settle({ as: 'acked', delivery }, () => acked(mark))
  }
  const ackThen: Settlements['ackThen'] = (delivery, done) => {
    const settlement: Settlement = { as: 'acked', delivery }
    const mark = departures.mark()
    settler.tell(settlement, (outcome) => {
      if (outcome.kind === 'settled') {
        acked(mark)
        done()
      } else void unsettled(settlement, outcome).then(done)
    })
  }
  const release: Settlements['release'] = (settlement) =>
    settle(settlement, () => void counters.released++)

  const dead: Settlements['dead'] = async (delivery, why) => {
    const settlement: Settlement = { as: 'dead', delivery, ...why }
    const mark = departures.mark()
    const outcome = await settler.settle(settlement)
    const unclear = outcome.kind === 'lost' && outcome.unclear
    if (outcome.kind !== 'settled' && !(unclear && (await isOnShelf(deps, delivery, why)))) {
      return unsettled(settlement, outcome)
    }
    counters.dead++
    departures.left(1, mark)
    announceDead(deps, delivery, why, delivery.fetchBody && (await delivery.fetchBody()))
  }

  const giveBack: Settlements['giveBack'] = (delivery, delayMs) =>
    release({ ...untouched(delivery), delayMs })

  return { acked, ack, ackThen, release, giveBack, dead }
}

/** Whether it lies there by this very death: nobody else would tell of it. */
async function isOnShelf<Tx>(
  { transport, queue, logger }: WorkerDeps<Tx>,
  { envelope }: Delivery,
  why: DeadReason,
): Promise<boolean> {
  try {
    const letter = await transport.shelf?.get(queue.name, envelope.id)
    if (letter === undefined || letter.reason !== why.reason) return false
    return why.attempt === undefined || letter.history.records.at(-1)?.at === why.attempt.at
  } catch (cause) {
    logger.warn(
      `queue "${queue.name}": whether message ${envelope.id} is among the dead letters is not known`,
      { queue: queue.name, messageId: envelope.id, cause },
    )
    return false
  }
}

type Unsettled = Exclude<SettleOutcome, { kind: 'settled' }>

function reportUnsettled<Tx>(
  deps: WorkerDeps<Tx>,
  settlement: Settlement,
  outcome: Unsettled,
  isBack: boolean,
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
  const isPlaceless = settlement.as === 'dead' && outcome.fault.code === 'notFound'
  const mend = isPlaceless ? `; what keeps its dead letters is gone, ${MAKE_AGAIN}` : ''
  const next = isBack ? 'it was given back as it was' : `it comes back when ${endOf(deps)} ends`
  logger.error(
    `queue "${queue.name}": message ${fields.messageId} could not be ${settlement.as} (${outcome.fault.code}); ${next}${mend}`,
    { ...fields, cause: outcome.fault.cause },
  )
}

function endOf<Tx>({ transport }: WorkerDeps<Tx>): string {
  return transport.traits.claim.kind === 'lease' ? 'its lease' : 'its connection'
}

function announceDead<Tx>(
  deps: WorkerDeps<Tx>,
  delivery: Delivery,
  why: DeadReason,
  fetched: FetchedBody | undefined,
): void {
  const { queue } = deps
  const view = deadLetterView(queue, {
    envelope: fetched?.ok ? fetched.envelope : delivery.envelope,
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
