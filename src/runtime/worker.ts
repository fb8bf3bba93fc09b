import { backendError } from '../model/backend-error.ts'
import type { Delivery } from '../model/delivery.ts'
import { type LeaseKeeper, leaseKeeper } from '../model/lease-keeper.ts'
import type { Subscription } from '../transport/transport.ts'
import { conclude } from './conclude.ts'
import { gatherer } from './gatherer.ts'
import { hands } from './hands.ts'
import { receiving } from './receiving.ts'
import { type Settler, settler } from './settler.ts'
import { type Taking, taking } from './taking.ts'
import { leaseMsOf, type WorkerDeps } from './worker-deps.ts'

/** Receives from one queue, runs its handler, and settles. */
export interface Worker {
  /** Resolves when the first receive is under way. */
  start(): Promise<void>
  /** Receives no more; what runs goes on. */
  stop(): void
  /** Resolves when nothing runs and everything is settled. */
  drained(): Promise<void>
  /** Once drained: resolves when its slots of the fleet are given back, however long the store is away. The caller bounds it. */
  settled(): Promise<void>
  /** Tells every handler to stop and gives its message back, uncounted. */
  shutDown(): void
  close(): Promise<void>
  /** One sentence for each thing that is wrong. */
  problems(): readonly string[]
}

/** How long one receive waits in the backend. Short enough that a pause or a lost wake-up costs little. */
const RECEIVE_WAIT_MS = 5_000

/** What runs, and as many settlements on their way. */
function inFlightOf(slots: number): number {
  return 2 * Math.max(1, slots)
}

export function worker<Tx>(deps: WorkerDeps<Tx>): Worker {
  const { queue, flow, transport, clock } = deps
  const stopped = new AbortController()
  const ended = new AbortController()
  const leaseMs = leaseMsOf(queue)
  const held = hands(deps)
  const taken = taking(deps, held, stopped.signal)
  const receiver = receiving(deps, stopped.signal)
  let subscription: Subscription | undefined
  let keeper: LeaseKeeper<Delivery> | undefined
  let settles: Settler | undefined
  let loop: Promise<void> | undefined

  const run = async (from: Subscription): Promise<void> => {
    while (!stopped.signal.aborted) {
      const free = held.slots()
      if (free <= 0) {
        await held.changed()
        continue
      }
      const max = Math.min(free, flow.appetite(), transport.traits.limits.receiveBatch)
      const batch = await receiver.receive(from, { max, waitMs: RECEIVE_WAIT_MS })
      const taking = batch.length > 0 ? taken.take(batch) : undefined
      if (taking !== undefined) await taking
    }
  }

  const equip = (from: Subscription): void => {
    const onError = receiver.noteRenewError
    keeper = leaseKeeper({ renew: from.renew?.bind(from), clock, leaseMs, onError })
    const own = { subscription: from, leaseMs, ended: ended.signal, onHeld: held.held }
    const made = settler({ ...deps, ...own })
    settles = made
    const concluding = conclude(deps, made, recorder(deps), ended.signal)
    held.equip({ keeper, settler: made, concluding })
  }

  return {
    start: async () => {
      if (loop !== undefined) return
      const maxInFlight = inFlightOf(flow.slots())
      const options = { group: 'workers', leaseMs, maxInFlight }
      subscription = await transport.subscribe(queue.name, options).catch((cause: unknown) => {
        const call = { where: `queue "${queue.name}"`, reads: true, fields: { queue: queue.name } }
        throw backendError({ ...transport.diagnose(cause), cause }, call)
      })
      if (ended.signal.aborted) return subscription.close()
      const opened = subscription
      equip(opened)
      flow.start((slots) => {
        opened.resize(inFlightOf(slots))
        held.notify()
      })
      loop = run(subscription)
    },
    stop: () => {
      stopped.abort()
      flow.stop()
      held.notify()
    },
    drained: async () => {
      await loop
      await held.empty()
    },
    settled: flow.settled,
    shutDown: held.shutDown,
    close: async () => {
      stopped.abort()
      ended.abort()
      held.notify()
      keeper?.close()
      await Promise.all([subscription?.close(), flow.close()])
    },
    problems: () => {
      const failing = keeper?.failingSince !== undefined
      return [
        ...receiver.problems(),
        ...flow.problems(),
        ...(settles?.problems() ?? []),
        ...ownProblems(deps, taken, failing),
      ]
    },
  }
}

function ownProblems<Tx>(
  { queue, counters }: WorkerDeps<Tx>,
  taken: Pick<Taking, 'problem' | 'late'>,
  renewFailing: boolean,
): readonly string[] {
  const failing = taken.problem()
  const handlers = counters.abandoned - taken.late()
  const late = (count: number, what: string): readonly string[] =>
    count === 0 ? [] : [`queue "${queue.name}": ${count} ${what} still run after their timeout`]
  return [
    ...(failing === undefined ? [] : [failing]),
    ...(renewFailing ? [`queue "${queue.name}": leases cannot be renewed`] : []),
    ...late(handlers, 'handler(s)'),
    ...late(taken.late(), 'schema call(s)'),
  ]
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
