import { pause } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import { isPromise, type MaybePromise } from '../model/maybe-promise.ts'
import { beforeRun } from '../model/retry.ts'
import type { Subscription } from '../transport/transport.ts'
import { type Conclude, conclude } from './conclude.ts'
import { gatherer } from './gatherer.ts'
import { type Incoming, incoming } from './incoming.ts'
import { type LeaseKeeper, leaseKeeper } from './lease-keeper.ts'
import { notifier } from './notifier.ts'
import { receiving } from './receiving.ts'
import { type StartedRun, startRun } from './run.ts'
import { settler } from './settler.ts'
import { leaseMsOf, type WorkerDeps } from './worker-deps.ts'

/** Receives from one queue, runs its handler, and settles. */
export interface Worker {
  /** Resolves when the first receive is under way. */
  start(): Promise<void>
  /** Receives no more; what runs goes on. */
  stop(): void
  /** Resolves when nothing runs and everything is settled. */
  drained(): Promise<void>
  /** Tells every handler to stop and gives its message back, uncounted. */
  shutDown(): void
  close(): Promise<void>
  /** One sentence for each thing that is wrong. */
  problems(): readonly string[]
}

/** How long one receive waits in the backend. Short enough that a pause or a lost wake-up costs little. */
const RECEIVE_WAIT_MS = 5_000
/** Runs that never ended, beyond the concurrency: more would mean a leak without bound. */
const ABANDONED_MAX = 1_000
const BUSY_ALONE_DELAY_MS = 0
const INBOX_AWAY_DELAY_MS = 1_000

export function worker<Tx>(deps: WorkerDeps<Tx>): Worker {
  const { queue, concurrency, transport } = deps
  const stopped = new AbortController()
  const ended = new AbortController()
  const running = new Set<StartedRun>()
  const change = notifier()
  const leaseMs = leaseMsOf(queue)
  let settling = 0
  let alone = false
  let subscription: Subscription | undefined
  let keeper: LeaseKeeper | undefined
  let concluding: Conclude | undefined
  let loop: Promise<void> | undefined
  let inboxFailing: string | undefined

  const slots = (): number => {
    if (alone || deps.counters.abandoned >= ABANDONED_MAX + concurrency) return 0
    return Math.min(concurrency - running.size, 2 * concurrency - running.size - settling)
  }
  /** Settles in the background; the slot is free already, but what is unsettled stays bounded. */
  const settleLater = async (
    delivery: Delivery,
    act: (to: Conclude) => Promise<void>,
  ): Promise<void> => {
    settling++
    try {
      if (concluding !== undefined) await act(concluding)
    } catch (error) {
      deps.logger.error(`queue "${queue.name}": settling message ${delivery.envelope.id} failed`, {
        queue: queue.name,
        cause: error,
      })
    } finally {
      keeper?.letGo(delivery)
      settling--
      change.notify()
    }
  }

  const start = (delivery: Delivery, message: Parameters<typeof startRun>[2]): void => {
    const run = startRun(deps, delivery, message)
    running.add(run)
    keeper?.hold(delivery, run.lose)
    if (delivery.alone) alone = true
    watchClaim(run, transport.traits.claim.kind)
    void run.returned.then(change.notify)
    void run.ended.then((end) => {
      running.delete(run)
      if (delivery.alone) alone = false
      void settleLater(delivery, (to) =>
        to.run(delivery, message.idempotencyKey, end, run.effect.state),
      )
      change.notify()
    })
  }

  const begin = (delivery: Delivery, read: Incoming): void => {
    const verdict = beforeRun(delivery.history, queue.retry)
    if (verdict !== undefined) void settleLater(delivery, (to) => to.dead(delivery, verdict))
    else if (!read.ok) void settleLater(delivery, (to) => to.failure(delivery, read.error))
    else if (stopped.signal.aborted) void settleLater(delivery, (to) => to.giveBack(delivery, 0))
    else start(delivery, read.message)
  }

  const take = async (batch: readonly Delivery[]): Promise<void> => {
    // While others run, a message that killed its worker waits: their deaths must not be blamed on it.
    const [first] = batch
    if (first?.alone === true && running.size > 0) {
      for (const delivery of batch) {
        void settleLater(delivery, (to) => to.giveBack(delivery, BUSY_ALONE_DELAY_MS))
      }
      while (running.size > 0 || settling > 0) await change.wait()
      return
    }
    for (const delivery of batch) keeper?.hold(delivery, () => undefined)
    const reading = batch.map((delivery) => incoming(queue, delivery))
    const read = reading.every(isRead) ? reading : await Promise.all(reading)
    const known = await knownKeys(deps, read, (problem) => {
      inboxFailing = problem
    })
    for (const [i, one] of read.entries()) {
      if (known === undefined) {
        void settleLater(one.delivery, (to) => to.giveBack(one.delivery, INBOX_AWAY_DELAY_MS))
      } else if (known[i] === true) {
        void settleLater(one.delivery, (to) => to.duplicate(one.delivery))
      } else begin(one.delivery, one)
    }
    if (known === undefined) await pause(deps.clock, INBOX_AWAY_DELAY_MS, stopped.signal)
  }

  const receiver = receiving(deps, stopped.signal)
  const run = async (from: Subscription): Promise<void> => {
    while (!stopped.signal.aborted) {
      const free = slots()
      if (free <= 0) {
        await change.wait()
        continue
      }
      const max = Math.min(free, transport.traits.limits.receiveBatch)
      const batch = await receiver.receive(from, { max, waitMs: RECEIVE_WAIT_MS })
      if (batch.length > 0) await take(batch)
    }
  }

  return {
    start: async () => {
      const group = 'workers'
      subscription = await transport.subscribe(queue.name, {
        group,
        leaseMs,
        maxInFlight: 2 * concurrency,
      })
      if (ended.signal.aborted) return subscription.close()
      keeper = leaseKeeper({
        subscription,
        clock: deps.clock,
        leaseMs,
        onError: receiver.noteRenewError,
      })
      const settles = settler({ ...deps, subscription, leaseMs, ended: ended.signal })
      concluding = conclude(deps, settles, recorder(deps))
      loop = run(subscription)
    },
    stop: () => {
      stopped.abort()
      change.notify()
    },
    drained: async () => {
      await loop
      while (running.size > 0 || settling > 0) await change.wait()
    },
    shutDown: () => {
      for (const one of running) one.shutDown()
    },
    close: async () => {
      stopped.abort()
      ended.abort()
      change.notify()
      keeper?.close()
      await subscription?.close()
    },
    problems: () => [
      ...receiver.problems(),
      ...(inboxFailing === undefined ? [] : [inboxFailing]),
      ...(keeper?.failingSince === undefined
        ? []
        : [`queue "${queue.name}": leases cannot be renewed`]),
      ...(deps.counters.abandoned === 0
        ? []
        : [
            `queue "${queue.name}": ${deps.counters.abandoned} handler(s) still run after their timeout`,
          ]),
    ],
  }
}

function isRead(one: MaybePromise<Incoming>): one is Incoming {
  return !isPromise(one)
}

/** Lease stores tell the keeper; sessions and assignments tell by the claim's own signal. */
function watchClaim(run: StartedRun, kind: string): void {
  if (kind === 'lease') return
  run.delivery.claim.lost.addEventListener('abort', run.lose, { once: true })
}

function recorder<Tx>(deps: WorkerDeps<Tx>): Parameters<typeof conclude>[2] {
  const { queue, inbox } = deps
  return gatherer<string, void>({
    maxBatch: 1_000,
    flush: async (keys) => {
      await inbox?.record(keys.map((key) => ({ queue: queue.name, key })))
      return keys.map(() => undefined)
    },
  })
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
    const why = error instanceof Error ? error.message : String(error)
    note(`queue "${queue.name}": inbox ${inbox.name} does not answer (${why})`)
    deps.logger.error(`queue "${queue.name}": inbox ${inbox.name} does not answer`, {
      cause: error,
    })
    return undefined
  }
}
