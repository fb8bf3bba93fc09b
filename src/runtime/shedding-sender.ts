import { hasCode } from '../model/errors.ts'
import type { Logger } from '../model/logger.ts'
import { type MaybePromise, recovered } from '../model/maybe-promise.ts'
import type { Transport } from '../transport/transport.ts'
import type { Admission } from './admission.ts'
import type { AnyQueue } from './queue.ts'
import type { Sender } from './sender.ts'
import { type Tally, tally } from './tally.ts'

export interface SheddingSenderOptions {
  readonly queue: AnyQueue
  readonly transport: Transport
  readonly admission: Admission
  readonly now: () => number
  readonly logger: Logger
  readonly onShed: (messages: number) => void
  readonly closed: AbortSignal
}

/** Other processes take the room that was made, too: a send that lost it so often gives up. */
const ROUNDS = 8
/** Sends of one process that wait for their turn; each holds its payload in memory. */
const LINE_MAX = 10_000

/**
 * `whenFull: 'shed'`: a send that finds the queue full makes room first, at the cost of what waits. One in a transaction of the user's
 * does not: what was removed for it would stay removed when that is rolled back.
 */
export function sheddingSender(sender: Sender, options: SheddingSenderOptions): Sender {
  const { queue, transport, admission, closed } = options
  const { capacity } = queue
  const { shed } = transport
  if (capacity === 'unbounded' || capacity.whenFull !== 'shed' || shed === undefined) return sender
  const reason =
    capacity.shedTo === 'dead-letters'
      ? { reason: `shed: the queue held ${capacity.maxDepth} messages, as many as it may` }
      : {}
  const report = reporting(options)

  const makeRoom = async (max: number, upTo: number): Promise<boolean> => {
    const removed = await admission.makeRoom(() =>
      shed(queue.name, { max, upTo, signal: closed, ...reason }),
    )
    if (removed === 0) return false
    options.onShed(removed)
    report(removed)
    return true
  }

  const makingRoom = async <T>(
    attempt: () => MaybePromise<T>,
    count: number,
    priority: number,
  ): Promise<T> => {
    for (let round = 1; ; round++) {
      try {
        return await attempt()
      } catch (error) {
        if (!hasCode(error, 'MILLRACE_QUEUE_FULL') || round > ROUNDS) throw error
        if (!(await makeRoom(count, priority))) throw error
      }
    }
  }

  // One after another: what two remove side by side is chosen before either of their messages is there to be compared.
  let last: Promise<unknown> = Promise.resolve()
  let inLine = 0
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    inLine += 1
    const mine = last.then(work).finally(() => {
      inLine -= 1
    })
    last = mine.catch(() => undefined)
    return mine
  }

  const withRoom = <T>(
    attempt: () => MaybePromise<T>,
    count: number,
    send: { readonly tx?: unknown; readonly priority?: number } | undefined,
  ): MaybePromise<T> => {
    if (send?.tx !== undefined || inLine >= LINE_MAX) return attempt()
    const work = (): Promise<T> => makingRoom(attempt, count, send?.priority ?? 0)
    if (inLine > 0) return inTurn(work)
    return recovered(attempt, (error) => {
      if (!hasCode(error, 'MILLRACE_QUEUE_FULL')) throw error
      return inTurn(work)
    })
  }

  return {
    sendNow: (payload, send) => withRoom(() => sender.sendNow(payload, send), 1, send),
    sendBatch: (payloads, send) =>
      withRoom(() => sender.sendBatch(payloads, send), payloads.length, send),
  }
}

function reporting({ queue, now, logger, closed }: SheddingSenderOptions): Tally {
  const tell = (shed: number): void =>
    logger.warn(
      `queue "${queue.name}" is full: ${shed} ${shed === 1 ? 'message of it was' : 'messages of it were'} shed for newer ones`,
      { queue: queue.name, shed },
    )
  return tally(now, tell, closed)
}
