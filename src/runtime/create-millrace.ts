import { AsyncLocalStorage } from 'node:async_hooks'
import type { Admin, QueueRef } from '../admin/admin.ts'
import type { AdminContext } from '../admin/context.ts'
import { createAdmin } from '../admin/create-admin.ts'
import type { RoomTurn } from '../deadletters/redrive.ts'
import type { Breakers } from '../flow/breakers.ts'
import type { ConcurrencyLimiter } from '../flow/concurrency-limiter.ts'
import { type Meter, meter } from '../flow/meter.ts'
import { mostSlots, type QueueFlow, queueFlow } from '../flow/queue-flow.ts'
import { systemClock } from '../model/clock.ts'
import { hasCode, MillraceError } from '../model/errors.ts'
import { idMaker } from '../model/ids.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import { nearest } from '../model/nearest.ts'
import { problems, show } from '../model/problems.ts'
import { type AnnouncementsOptions, announcements } from './announcements.ts'
import type { App, QueueCounters, WorkOptions } from './app.ts'
import { backendView } from './backend-view.ts'
import { type Counting, counting } from './counters.ts'
import type { MillraceOptions } from './create.ts'
import type { Departures } from './departures.ts'
import {
  breakersOf,
  concurrencyLimiterOf,
  limiterOf,
  measureOf,
  resumedConsumers,
  sightOf,
  storeError,
} from './flow-sources.ts'
import { healthOf } from './health.ts'
import { heldLine } from './held-line.ts'
import { type Lifecycle, lifecycle } from './lifecycle.ts'
import type { Handler } from './message.ts'
import { type ResolvedOptions, resolveOptions } from './millrace-options.ts'
import { openParts, type Parts } from './parts.ts'
import type { AnyQueue } from './queue.ts'
import { type QueueSenderOptions, queueSender } from './queue-sender.ts'
import { transportOf } from './queue-transport.ts'
import { resumeStore } from './resume-store.ts'
import type { Sender } from './sender.ts'
import { sendsUnderWay } from './sends-under-way.ts'
import { transactionSends } from './transaction-sends.ts'
import { type ResolvedWork, resolveWork, WORK_KEYS } from './work-options.ts'
import { type Worker, worker } from './worker.ts'

/** Everything of one queue in this process. */
interface Lane {
  readonly queue: AnyQueue
  readonly sender: Sender
  readonly counters: Counting
  readonly departures: Departures
  readonly turn: RoomTurn | undefined
  readonly meter: Meter
  readonly breakers: Breakers | undefined
  readonly limits: ConcurrencyLimiter | undefined
}

/** Handlers start outside of whoever called us: no request's async context leaks into a message (SEC-04). */
const outside = AsyncLocalStorage.snapshot()

/**
 * Opens the transport, makes the queues, and answers an app that can send at once and works after `start`.
 * @throws MILLRACE_INVALID_OPTIONS, MILLRACE_UNAVAILABLE, MILLRACE_SCHEMA_OUTDATED, MILLRACE_SCHEMA_TOO_NEW, MILLRACE_MISSING_CLIENT
 */
export async function createMillrace<Tx = unknown>(options: MillraceOptions<Tx>): Promise<App<Tx>> {
  const { resolved, found } = resolveOptions(options)
  const parts = await openParts(options, resolved, found)
  const closed = new AbortController()
  const held = heldLine({ clock: resolved.clock, closed: closed.signal })
  const underWay = sendsUnderWay()
  const lanes = makeLanes(resolved, parts, { held, underWay }, closed.signal)
  const find = (queue: QueueRef): Lane => findLane(lanes, queue)
  const workers = new Map<string, Worker>()
  const flows = new Map<string, { readonly flow: QueueFlow; readonly most: number }>()
  const announced = announcements({ hook: hookOf(options), logger: resolved.logger })
  const { signal } = closed
  const resumes = resumeStore({ ...parts, from: options.transport, resolved, closed: signal })
  const life = lifecycle({
    ...{ resolved, parts, workers, closed, announced, resumes, underWay },
    signalClock: options.signals ? (options.clock ?? systemClock({ unref: true })) : undefined,
  })
  const admin: Admin = createAdmin({
    ...parts,
    clock: resolved.clock,
    logger: resolved.logger,
    ...lookups(find),
    inboxTtlMs: parts.inbox?.ttlMs,
    backend: () => backendView(parts),
    measureOf: (name) => measureOf(find(name).meter, parts.store),
    resumed: (name) => resumedConsumers(name, flows.get(name)?.flow, resumes, resolved.clock),
    storeFault: (cause) => storeError(cause, parts.store),
    concurrencyOf: (name) => flows.get(name)?.most ?? 10,
    closed: closed.signal,
  })

  const work: App<Tx>['work'] = (queue, handler, given = {}) => {
    const lane = find(queue)
    const { name } = lane.queue
    const settings = checkWork(name, handler, given, workers, life)
    const flow = queueFlow({
      ...resolved,
      ...settings,
      queue: name,
      meter: lane.meter,
      breakers: lane.breakers,
      limiter: limiterOf(lane.queue, resolved, parts.store),
      limits: lane.limits,
      definition: lane.queue,
      store: resumes.heard,
      gauge: () => sightOf(parts.transport, name),
    })
    flows.set(name, { flow, most: mostSlots(settings.concurrency) })
    workers.set(
      name,
      worker<Tx>({
        ...resolved,
        ...lane,
        // The one place where the payload's type is asserted: the queue's schema has validated the value.
        handler: (message, ctx) => outside(handler as Handler<unknown, Tx>, message, ctx),
        flow,
        transport: transportOf(parts.transport, lane.queue),
        inbox: parts.inbox,
        senderOf: (to) => find(to).sender,
        onDead: announced.tell,
      }),
    )
  }

  return {
    queues: resolved.queues,
    send: (queue, payload, send) => answered(() => find(queue).sender.sendNow(payload, send)),
    sendBatch: (queue, payloads, send) =>
      answered(() => find(queue).sender.sendBatch(payloads, send)),
    work,
    start: life.start,
    close: life.close,
    health: () => healthOf({ ...resolved, parts, held, workers, life, queue: resolved.queues[0] }),
    admin,
    counters: () => countersOf(lanes),
  }
}

/** What the administration asks of the queues of this app. */
function lookups(
  find: (queue: QueueRef) => Lane,
): Pick<AdminContext, 'find' | 'turnOf' | 'breakersOf' | 'limitsOf'> {
  return {
    find: (queue) => find(queue).queue,
    turnOf: (name) => find(name).turn,
    breakersOf: (name) => find(name).breakers,
    limitsOf: (name) => find(name).limits,
  }
}

function hookOf({
  onDeadLetter,
}: Pick<MillraceOptions, 'onDeadLetter'>): AnnouncementsOptions['hook'] {
  return onDeadLetter && ((letter) => outside(onDeadLetter, letter))
}

/** Errors are rejections; but for the one that must be there before the caller's COMMIT, which is its next statement. */
function answered<T>(run: () => MaybePromise<T>): Promise<T> {
  try {
    return Promise.resolve(run())
  } catch (error) {
    if (hasCode(error, 'MILLRACE_TX_ASYNC')) throw error
    return Promise.reject(error)
  }
}

function makeLanes<Tx>(
  resolved: ResolvedOptions,
  parts: Parts<Tx>,
  sends: Pick<QueueSenderOptions, 'held' | 'underWay'>,
  closed: AbortSignal,
): ReadonlyMap<string, Lane> {
  const { clock, random, logger } = resolved
  const newId = idMaker(clock, random)
  const { outbox, store } = parts
  const transactions = transactionSends(parts.transport, outbox)
  const lanes = new Map<string, Lane>()
  for (const queue of resolved.queues) {
    const counters = counting()
    const transport = transportOf(parts.transport, queue)
    const sending = queueSender({
      ...{ queue, transport, ...sends, transactions, counters, clock, logger, newId, closed },
    })
    const measures = meter({ ...resolved, queue: queue.name, store, closed })
    const broken = breakersOf(queue, resolved, store, closed)
    lanes.set(queue.name, {
      queue,
      ...sending,
      counters,
      meter: measures,
      breakers: broken,
      limits: concurrencyLimiterOf(queue, resolved, store),
    })
  }
  return lanes
}

function findLane(lanes: ReadonlyMap<string, Lane>, queue: QueueRef): Lane {
  const name = typeof queue === 'string' ? queue : queue?.name
  const lane = lanes.get(name)
  if (lane !== undefined) return lane
  if (typeof name !== 'string') {
    throw new MillraceError(
      'MILLRACE_UNKNOWN_QUEUE',
      `expected a queue of defineQueue (app.admin takes its name, too), got ${show(queue)}`,
    )
  }
  const near = nearest(name, [...lanes.keys()])
  throw new MillraceError(
    'MILLRACE_UNKNOWN_QUEUE',
    `no queue ${show(name)} in this app${near ? `, did you mean "${near}"?` : ''}; add it to createMillrace({ queues })`,
    { fields: { queue: name } },
  )
}

function checkWork(
  queue: string,
  handler: unknown,
  given: WorkOptions,
  workers: ReadonlyMap<string, Worker>,
  life: Lifecycle,
): ResolvedWork {
  const found = problems(`work on queue "${queue}"`)
  found.knownKeys(given, WORK_KEYS)
  if (typeof handler !== 'function') found.add(`handler: expected a function, got ${show(handler)}`)
  if (workers.has(queue)) found.add('the queue has a handler in this app already')
  if (life.started()) found.add('register handlers before start()')
  const settings = resolveWork(given, found)
  found.throwIfAny()
  return settings
}

function countersOf(lanes: ReadonlyMap<string, Lane>): Readonly<Record<string, QueueCounters>> {
  return Object.fromEntries([...lanes].map(([name, lane]) => [name, { ...lane.counters }]))
}
