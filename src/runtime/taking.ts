import { pause } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import { messageOfError } from '../model/describe-error.ts'
import { isPromise, type MaybePromise } from '../model/maybe-promise.ts'
import { beforeRun } from '../model/retry.ts'
import type { Hands } from './hands.ts'
import { type Incoming, incoming } from './incoming.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** Decides what happens to deliveries that have just come: run, dead, given back, or known already. */
export interface Taking {
  /** Resolves when the worker may receive more. */
  take(batch: readonly Delivery[]): Promise<void>
  /** What is wrong with the inbox; undefined when nothing is. */
  problem(): string | undefined
}

const BUSY_ALONE_DELAY_MS = 0
const INBOX_AWAY_DELAY_MS = 1_000

export function taking<Tx>(deps: WorkerDeps<Tx>, hands: Hands, stopped: AbortSignal): Taking {
  const { queue } = deps
  let inboxFailing: string | undefined

  const begin = (delivery: Delivery, read: Incoming): void => {
    const verdict = beforeRun(delivery.history, queue.retry)
    if (verdict !== undefined) hands.settleLater(delivery, (to) => to.dead(delivery, verdict))
    else if (!read.ok) hands.settleLater(delivery, (to) => to.failure(delivery, read.error))
    else if (stopped.aborted) hands.settleLater(delivery, (to) => to.giveBack(delivery, 0))
    else hands.start(delivery, read.message)
  }

  const take = async (batch: readonly Delivery[]): Promise<void> => {
    // While others run, a message that killed its worker waits: their deaths must not be blamed on it.
    const [first] = batch
    if (first?.alone === true && hands.running > 0) {
      for (const delivery of batch) {
        hands.settleLater(delivery, (to) => to.giveBack(delivery, BUSY_ALONE_DELAY_MS))
      }
      return hands.empty()
    }
    for (const delivery of batch) hands.hold(delivery, () => undefined)
    const reading = batch.map((delivery) => incoming(queue, delivery))
    const read = reading.every(isRead) ? reading : await Promise.all(reading)
    const known = await knownKeys(deps, read, (problem) => {
      inboxFailing = problem
    })
    for (const [i, one] of read.entries()) {
      const { delivery } = one
      if (known === undefined) {
        hands.settleLater(delivery, (to) => to.giveBack(delivery, INBOX_AWAY_DELAY_MS))
      } else if (known[i] === true) hands.settleLater(delivery, (to) => to.duplicate(delivery))
      else begin(delivery, one)
    }
    if (known === undefined) await pause(deps.clock, INBOX_AWAY_DELAY_MS, stopped)
  }

  return { take, problem: () => inboxFailing }
}

function isRead(one: MaybePromise<Incoming>): one is Incoming {
  return !isPromise(one)
}

/** Which of these the inbox knows; undefined when it cannot be asked. */
async function knownKeys<Tx>(
  deps: WorkerDeps<Tx>,
  read: readonly Incoming[],
  note: (problem: string | undefined) => void,
): Promise<readonly boolean[] | undefined> {
  const { inbox, queue } = deps
  if (inbox === undefined) return []
  const readable = read.flatMap((one) => (one.ok ? [one.message.idempotencyKey] : []))
  try {
    const seen = await inbox.seen(readable.map((key) => ({ queue: queue.name, key })))
    note(undefined)
    let next = 0
    return read.map((one) => one.ok && seen[next++] === true)
  } catch (error) {
    note(`queue "${queue.name}": inbox ${inbox.name} does not answer (${messageOfError(error)})`)
    deps.logger.error(`queue "${queue.name}": inbox ${inbox.name} does not answer`, {
      cause: error,
    })
    return undefined
  }
}
