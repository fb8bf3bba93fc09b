import { pause } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import { gatherer } from './gatherer.ts'
import { giveBack, type Hands } from './hands.ts'
import type { Incoming } from './incoming.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** A delivery and what the inbox knows it by; undefined while nobody can say. */
export interface Keyed {
  readonly delivery: Delivery
  readonly key: string | undefined
}

/** What the inbox is asked before anything runs. */
export interface InboxQuestion {
  /** Gives those whose keys are known their end, and answers the others; all go back when the inbox cannot be asked. */
  unknown<One extends Keyed>(batch: readonly One[]): Promise<readonly One[]>
  /** The same of messages that were read; all of them, at once, where there is no inbox. */
  open(batch: readonly Incoming[]): MaybePromise<readonly Incoming[]>
  /** The same of one. Those of one moment are one question. */
  isOpen(read: Incoming): MaybePromise<boolean>
  /** What is wrong with the inbox; undefined when nothing is. */
  problem(): string | undefined
}

/** How long what could not be asked about waits, and we with it. */
export const AWAY_DELAY_MS = 1_000
const TOGETHER_MAX = 1_000

export function inboxQuestion<Tx>(
  deps: WorkerDeps<Tx>,
  hands: Hands,
  stopped: AbortSignal,
): InboxQuestion {
  let failing: string | undefined
  const note = (problem: string | undefined): void => {
    failing = problem
  }

  const unknown: InboxQuestion['unknown'] = async (batch) => {
    const known = await knownKeys(deps, batch, note)
    if (known === undefined) {
      giveBack(hands, batch.map(deliveryOf), AWAY_DELAY_MS)
      await pause(deps.clock, AWAY_DELAY_MS, stopped)
      return []
    }
    batch.forEach(({ delivery }, i) => {
      if (known[i] === true) hands.settleLater(delivery, (to) => to.duplicate(delivery))
    })
    return batch.filter((_, i) => known[i] !== true)
  }

  const openOf = async (batch: readonly Incoming[]): Promise<readonly Incoming[]> =>
    (await unknown(batch.map(keyedIncoming))).map(({ one }) => one)

  const together = gatherer<Incoming, boolean>({
    maxBatch: TOGETHER_MAX,
    flush: async (batch) => {
      const some = new Set(await openOf(batch))
      return batch.map((read) => some.has(read))
    },
  })

  return {
    unknown,
    open: (batch) => (deps.inbox === undefined ? batch : openOf(batch)),
    isOpen: (read) => deps.inbox === undefined || together.add(read),
    problem: () => failing,
  }
}

function keyedIncoming(one: Incoming): Keyed & { readonly one: Incoming } {
  return { delivery: one.delivery, key: one.ok ? one.message.idempotencyKey : undefined, one }
}

export function deliveryOf({ delivery }: Pick<Keyed, 'delivery'>): Delivery {
  return delivery
}

/** Which of these the inbox knows; undefined when it cannot be asked. */
async function knownKeys<Tx>(
  deps: WorkerDeps<Tx>,
  batch: readonly Keyed[],
  note: (problem: string | undefined) => void,
): Promise<readonly boolean[] | undefined> {
  const { inbox, queue } = deps
  if (inbox === undefined) return []
  const keys = batch.flatMap(({ key }) => (key === undefined ? [] : [key]))
  if (keys.length === 0) return []
  try {
    const seen = await inbox.seen(keys.map((key) => ({ queue: queue.name, key })))
    note(undefined)
    let next = 0
    return batch.map(({ key }) => key !== undefined && seen[next++] === true)
  } catch (error) {
    note(`queue "${queue.name}": inbox ${inbox.name} does not answer (${messageOfError(error)})`)
    deps.logger.error(`queue "${queue.name}": inbox ${inbox.name} does not answer`, {
      cause: error,
    })
    return undefined
  }
}
