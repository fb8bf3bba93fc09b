import { hasCode } from '../model/errors.ts'
import type { Logger } from '../model/logger.ts'
import { type MaybePromise, recovered } from '../model/maybe-promise.ts'
import type { Transport } from '../transport/transport.ts'
import type { Admission } from './admission.ts'
import type { AnyQueue } from './queue.ts'
import type { Sender } from './sender.ts'

export interface SheddingSenderOptions {
  readonly queue: AnyQueue
  readonly transport: Transport
  readonly admission: Admission
  readonly now: () => number
  readonly logger: Logger
  readonly onShed: (messages: number) => void
  readonly closed: AbortSignal
}

/** Others take the room that was made, too: a send that lost it so often gives up. */
const ROUNDS = 8
const REPORT_MS = 60_000

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
    const removed = await shed(queue.name, { max, upTo, signal: closed, ...reason })
    if (removed === 0) return false
    admission.freed(removed)
    options.onShed(removed)
    report(removed)
    return true
  }

  const withRoom = <T>(
    attempt: () => MaybePromise<T>,
    count: number,
    send: { readonly tx?: unknown; readonly priority?: number } | undefined,
  ): MaybePromise<T> => {
    if (send?.tx !== undefined) return attempt()
    return recovered(attempt, async (error) => {
      let last = error
      for (let round = 0; round < ROUNDS; round++) {
        if (!hasCode(last, 'MILLRACE_QUEUE_FULL')) break
        if (!(await makeRoom(count, send?.priority ?? 0))) break
        try {
          return await attempt()
        } catch (failure) {
          last = failure
        }
      }
      throw last
    })
  }

  return {
    sendNow: (payload, send) => withRoom(() => sender.sendNow(payload, send), 1, send),
    sendBatch: (payloads, send) =>
      withRoom(() => sender.sendBatch(payloads, send), payloads.length, send),
  }
}

/** Says at once that it sheds, and then each minute how much. */
function reporting({ queue, now, logger }: SheddingSenderOptions): (messages: number) => void {
  let since = 0
  let saidAt = Number.NEGATIVE_INFINITY
  return (messages) => {
    since += messages
    if (now() - saidAt < REPORT_MS) return
    logger.warn(`queue "${queue.name}" is full: ${since} messages of it were shed for newer ones`, {
      queue: queue.name,
      shed: since,
    })
    since = 0
    saidAt = now()
  }
}
