import type { Admitted, Later } from '../flow/queue-flow.ts'
import type { Delivery } from '../model/delivery.ts'
import { hasCode } from '../model/errors.ts'
import { chain, isPromise, type MaybePromise, recovered } from '../model/maybe-promise.ts'
import { beforeRun } from '../model/retry.ts'
import { fetching } from './fetching.ts'
import { giveBack, type Hands } from './hands.ts'
import { deliveryOf, inboxQuestion } from './inbox-question.ts'
import { type Incoming, incoming } from './incoming.ts'
import { isRead, judging } from './judging.ts'
import type { Message } from './message.ts'
import { waitingHold } from './waiting-hold.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** Decides what happens to deliveries that have just come: run, dead, given back, or known already. */
export interface Taking {
  /** Undefined when the worker may receive more at once, else resolves when it may. */
  take(batch: readonly Delivery[]): Promise<unknown> | undefined
  /** What is wrong with the inbox or the blobs; undefined when nothing is. */
  problem(): string | undefined
  /** See `Judging`. */
  late(): number
}

const CROWDED_DELAY_MS = 0

export function taking<Tx>(deps: WorkerDeps<Tx>, hands: Hands, stopped: AbortSignal): Taking {
  const { queue } = deps
  const { came, hold, isGone } = waitingHold(hands, deps)
  const mayStart = (one: Delivery): boolean => !stopped.aborted && !isGone(one)
  const inbox = inboxQuestion(deps, hands, stopped)

  const begin = (read: Incoming, judgedMs = 0): MaybePromise<void> => {
    const { delivery } = read
    const verdict = beforeRun(delivery.history, queue.retry)
    if (verdict !== undefined) hands.settleLater(delivery, (to) => to.dead(delivery, verdict))
    else if (!read.ok) hands.settleLater(delivery, (to) => to.failure(delivery, read.error))
    else if (stopped.aborted) giveBack(hands, [delivery], 0)
    else return runOrWait(deps, hands, { mayStart, hold, judgedMs }, read)
  }

  const judged = judging({
    ...deps,
    hands,
    stopped,
    judged: async (read, tookMs) => {
      if (await inbox.isOpen(read)) await begin(read, tookMs)
    },
  })

  const judge = (batch: readonly Delivery[]): Promise<unknown> | undefined => {
    const reading = batch.map((delivery) => incoming(deps, delivery))
    if (deps.inbox === undefined && reading.every(isRead)) return beginAll(reading, begin)
    hold(batch)
    return beginRead(batch, reading)
  }

  /** Those of slow schemas begin by themselves, later. */
  const beginRead = (
    batch: readonly Delivery[],
    reading: readonly MaybePromise<Incoming>[],
  ): Promise<unknown> | undefined => beginAll(inbox.open(judged.follow(batch, reading)), begin)

  const bodies = fetching({
    ...deps,
    hands,
    stopped,
    fetched: async (delivery, read) => {
      for (const one of judged.follow([delivery], [read])) {
        if (await inbox.isOpen(one)) await begin(one)
      }
    },
  })

  /** Whose key came with the message is asked for first: of a known one the body is not needed. */
  const fetchUnknown = async (batch: readonly Delivery[]): Promise<void> => {
    const keyed = batch.map((delivery) => ({ delivery, key: delivery.envelope.idempotencyKey }))
    bodies.follow((await inbox.unknown(keyed)).map(deliveryOf))
  }

  const take: Taking['take'] = (batch) => {
    came()
    // While others run or are settled, a message that killed its worker waits: their deaths must not be blamed on it.
    if (batch[0]?.alone === true && hands.isCrowded()) {
      giveBack(hands, batch, CROWDED_DELAY_MS)
      return hands.uncrowded()
    }
    const ready = deps.flow.ready()
    if (ready === undefined) return takeReady(batch)
    hold(batch)
    return ready.then(() => takeReady(batch))
  }

  const takeReady: Taking['take'] = (batch) => {
    if (batch.every(isWhole)) return judge(batch)
    hold(batch)
    return Promise.all([
      judge(batch.filter(isWhole)),
      fetchUnknown(batch.filter((delivery) => !isWhole(delivery))),
    ])
  }

  return {
    take,
    problem: () => inbox.problem() ?? bodies.problem(),
    late: () => judged.late,
  }
}

/** Undefined when nobody had to be asked. */
function beginAll(
  batch: MaybePromise<readonly Incoming[]>,
  begin: (read: Incoming) => MaybePromise<void>,
): Promise<unknown> | undefined {
  if (isPromise(batch)) return batch.then((some) => beginAll(some, begin))
  let asking: Promise<void>[] | undefined
  for (const one of batch) {
    const begun = begin(one)
    if (begun === undefined) continue
    asking ??= []
    asking.push(Promise.resolve(begun))
  }
  return asking && Promise.all(asking)
}

/** The one place where the flow of a queue may keep a message back; it may have to ask the store first. */
function runOrWait<Tx>(
  { flow }: WorkerDeps<Tx>,
  hands: Hands,
  { mayStart, hold, judgedMs }: Holding,
  { delivery, message }: { readonly delivery: Delivery; readonly message: Message<unknown> },
): MaybePromise<void> {
  const admission = recovered<Admitted | Later | Nameless>(
    () => flow.admit(message.payload, delivery.alone ? delivery.envelope.id : undefined),
    async (error) => {
      if (!hasCode(error, 'MILLRACE_PERMANENT')) throw error
      return { as: 'nameless', error }
    },
  )
  if (isPromise(admission)) hold([delivery])
  return chain(admission, (admitted) => {
    if (admitted.as === 'nameless') {
      return hands.settleLater(delivery, (to) => to.failure(delivery, admitted.error))
    }
    if (admitted.as === 'later') {
      return hands.settleLater(delivery, (to) => to.giveBack(delivery, admitted.delayMs))
    }
    const isOurs = admitted.slot?.isOver() !== true
    if (isOurs && mayStart(delivery)) return hands.start(delivery, message, admitted, judgedMs)
    // Nobody else may try its downstream, or have its slot, before this is said.
    flow.unused(admitted)
    hands.settleLater(delivery, (to) => to.giveBack(delivery, 0))
  })
}

/** No limit can be kept with it. */
interface Nameless {
  readonly as: 'nameless'
  readonly error: unknown
}

interface Holding {
  mayStart(delivery: Delivery): boolean
  hold(batch: readonly Delivery[]): void
  readonly judgedMs: number
}

function isWhole({ fetchBody }: Delivery): boolean {
  return fetchBody === undefined
}
