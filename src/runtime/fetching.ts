import { type Clock, pause } from '../model/clock.ts'
import type { Delivery, FetchedBody } from '../model/delivery.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import type { Hands } from './hands.ts'
import { AWAY_DELAY_MS } from './inbox-question.ts'
import { type Incoming, incoming, type Receiver } from './incoming.ts'

/** Deliveries whose body lies elsewhere. Each is fetched by itself, in a slot of its own: a slow one holds up itself alone. */
export interface Fetching {
  /** All are held already. What cannot be had now goes back uncounted, and its slot stays taken for as long as it waits. */
  follow(batch: readonly Delivery[]): void
  /** What is wrong with where the bodies lie; undefined when nothing is. */
  problem(): string | undefined
}

export interface FetchingOptions extends Receiver {
  readonly clock: Clock
  readonly logger: Logger
  readonly hands: Pick<Hands, 'reserve' | 'settleLater'>
  /** Nothing begins any more: what was not fetched yet goes back. */
  readonly stopped: AbortSignal
  /** The slot is kept until this has resolved. */
  readonly fetched: (delivery: Delivery, read: MaybePromise<Incoming>) => Promise<void>
}

interface Fetch {
  readonly delivery: Delivery
  readonly free: () => void
}

export function fetching(options: FetchingOptions): Fetching {
  const { clock, hands, stopped } = options
  const open = new Set<Fetch>()
  let failing: string | undefined
  /** Many fail at once, and say the same. */
  let quietUntil = 0

  const giveBack = ({ delivery }: Fetch, delayMs: number): void =>
    hands.settleLater(delivery, (to) => to.giveBack(delivery, delayMs))

  const noteAway = (error: unknown): void => {
    failing = `queue "${options.queue.name}": ${messageOfError(error)}`
    const now = clock.now()
    if (now < quietUntil) return
    quietUntil = now + AWAY_DELAY_MS
    options.logger.error(failing)
  }

  const arrived = async (one: Fetch, body: Body): Promise<void> => {
    if ('read' in body) {
      failing = undefined
      return await options.fetched(one.delivery, body.read)
    }
    noteAway(body.away)
    giveBack(one, AWAY_DELAY_MS)
    await pause(clock, AWAY_DELAY_MS, stopped)
  }

  const fetch = async (one: Fetch): Promise<void> => {
    const body = await bodyOf(options, one.delivery)
    // The worker ends, and it has been given back.
    if (!open.delete(one)) return
    await arrived(one, body).catch((cause) =>
      hands.settleLater(one.delivery, () => Promise.reject(cause)),
    )
    one.free()
  }

  const leave = (): void => {
    for (const one of open) {
      giveBack(one, 0)
      one.free()
    }
    open.clear()
  }
  stopped.addEventListener('abort', leave)

  return {
    follow: (batch) => {
      for (const delivery of batch) {
        const one = { delivery, free: hands.reserve(delivery) }
        open.add(one)
        void fetch(one)
      }
      if (stopped.aborted) leave()
    },
    problem: () => failing,
  }
}

function asAway(error: unknown): FetchedBody {
  return { ok: false, retryable: true, error }
}

type Body = { readonly read: MaybePromise<Incoming> } | { readonly away: unknown }

async function bodyOf(receiver: Receiver, delivery: Delivery): Promise<Body> {
  const fetched = await delivery.fetchBody?.().catch(asAway)
  if (fetched === undefined || fetched.ok) {
    return { read: incoming(receiver, delivery, fetched?.envelope) }
  }
  const { retryable, error } = fetched
  return retryable ? { away: error } : { read: { ok: false, delivery, error } }
}
