import type { Clock } from '../model/clock.ts'
import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { MillraceError } from '../model/errors.ts'
import type { Logger } from '../model/logger.ts'
import { problems } from '../model/problems.ts'
import type { OutboxRow } from '../outbox/outbox.ts'
import { type Relay, startRelay } from '../outbox/relay.ts'
import type { Announcements } from './announcements.ts'
import type { CloseOptions } from './app.ts'
import { bounded } from './bounded.ts'
import { faultless } from './faultless.ts'
import { type Housekeeping, startHousekeeping } from './housekeeping.ts'
import { likelySlips } from './likely-slips.ts'
import type { ResolvedOptions } from './millrace-options.ts'
import { missingOutbox } from './missing-outbox.ts'
import type { Parts } from './parts.ts'
import type { ResumeStore } from './resume-store.ts'
import type { SendsUnderWay } from './sends-under-way.ts'
import { shortWindow } from './short-window.ts'
import { onSignals, type SignalActs } from './signals.ts'
import type { Worker } from './worker.ts'

/** Start, drain, close: each once, whatever the backend does. */
export interface Lifecycle {
  /** May be called again after it failed; what works already stays as it is. */
  start(): Promise<void>
  close(options?: CloseOptions): Promise<void>
  started(): boolean
  /** Why the last start failed; undefined when it did not. */
  startFailure(): unknown
  closing(): boolean
  relay(): Relay | undefined
}

export interface LifecycleOptions<Tx> {
  readonly resolved: ResolvedOptions
  readonly parts: Parts<Tx>
  readonly workers: ReadonlyMap<string, Worker>
  readonly closed: AbortController
  /** Listens to signals, by this clock. */
  readonly signalClock: Clock | undefined
  readonly announced: Announcements
  readonly underWay: Pick<SendsUnderWay, 'ended'>
  readonly resumes: Pick<ResumeStore, 'close'>
}

const DRAIN_DEFAULT_MS = 30_000
/** For the last settlements, once the drain is over. */
const SETTLE_MS = 200
/** For closing subscriptions, and again for connections, to a backend that may be gone. Together below 500 ms. */
const CLOSE_MS = 100

export function lifecycle<Tx>(options: LifecycleOptions<Tx>): Lifecycle {
  const { resolved, parts, workers, closed } = options
  const { clock } = resolved
  let begun: Promise<void> | undefined
  let startFailure: unknown
  let ending: Promise<void> | undefined
  let isSignalled = false
  let relay: Relay | undefined
  let housekeeping: Housekeeping | undefined
  const draining = drainingOf(options)

  const begin = async (): Promise<void> => {
    relay ??= relayOf(options)
    housekeeping ??= beginOnce(resolved, parts)
    startFailure = undefined
    const isWhole = await startAll(workers, () => ending !== undefined, closed.signal)
    // Whoever sent a signal wanted this end: nothing has failed.
    if (isWhole || isSignalled) return
    throw new MillraceError('MILLRACE_CLOSED', 'the app was closed while it was starting')
  }

  const failed = (error: unknown): never => {
    begun = undefined
    startFailure = error ?? 'no reason given'
    throw error
  }

  const end = async (timeoutMs: number): Promise<void> => {
    await draining.drain(timeoutMs)
    unlisten()
    housekeeping?.stop()
    closed.abort(new MillraceError('MILLRACE_CLOSED', 'the app is closed'))
    const workersClosed = [...workers.values()].map((worker) => worker.close())
    await bounded(clock, CLOSE_MS, Promise.allSettled([...workersClosed, relay?.close()]))
    const { store, transport, inbox, outbox } = parts
    // The transport may still need the store for what it has in hand.
    const both = transport.close().finally(() => store?.close())
    const parted = [both, inbox?.close(), outbox?.close(), options.resumes.close()]
    await bounded(clock, CLOSE_MS, Promise.allSettled(parted))
    // One that hangs must not keep the other open.
    await bounded(clock, CLOSE_MS / 2, Promise.allSettled([store?.close()]))
  }

  const close = (given: CloseOptions = {}): Promise<void> => {
    const found = problems('close')
    found.knownKeys(given, ['timeoutMs'])
    const timeoutMs = found.number('timeoutMs', given.timeoutMs, {
      min: 0,
      max: 86_400_000,
      default: DRAIN_DEFAULT_MS,
      integer: false,
    })
    found.throwIfAny()
    if (ending !== undefined && timeoutMs === 0) draining.hurry()
    ending ??= end(timeoutMs)
    return ending
  }

  const closeAsSignalled = (given?: CloseOptions): void => {
    isSignalled = true
    void close(given)
  }
  // From here on, not from `start`: an app that only sends has sends in hand, too.
  const unlisten = closeOnSignals(closeAsSignalled, resolved.logger, options.signalClock)

  return {
    start: async () => {
      if (ending !== undefined) {
        if (isSignalled && begun === undefined) return
        throw new MillraceError('MILLRACE_CLOSED', 'the app is closed; make a new one to start')
      }
      begun ??= begin().catch(failed)
      return begun
    },
    close,
    started: () => begun !== undefined,
    startFailure: () => startFailure,
    closing: () => ending !== undefined,
    relay: () => relay,
  }
}

/** What a start that failed has done already is not done again. */
function beginOnce<Tx>(resolved: ResolvedOptions, parts: Parts<Tx>): Housekeeping {
  const { queues, logger } = resolved
  for (const queue of queues) {
    const short = parts.inbox === undefined ? shortWindow(queue) : []
    for (const what of [...likelySlips(queue), ...short]) {
      logger.warn(what, { queue: queue.name })
    }
  }
  for (const what of missingOutbox(parts)) logger.warn(what)
  return startHousekeeping({ ...resolved, parts })
}

/** False when a close has overtaken it. */
async function startAll(
  workers: ReadonlyMap<string, Worker>,
  isClosing: () => boolean,
  closed: AbortSignal,
): Promise<boolean> {
  for (const worker of workers.values()) {
    if (isClosing()) return false
    try {
      await worker.start()
    } catch (error) {
      // Its connection was closed under it.
      if (closed.aborted) return false
      throw error
    }
  }
  return true
}

interface Draining {
  /**
   * Until nothing runs, the slots of the fleet are given back, nobody is told of a dead letter and no send is under way any more, or
   * until the time is over.
   */
  drain(timeoutMs: number): Promise<void>
  /** The time is over now. */
  hurry(): void
}

function drainingOf<Tx>(options: LifecycleOptions<Tx>): Draining {
  const { workers, announced, underWay } = options
  const { clock } = options.resolved
  const hurried = Promise.withResolvers<void>()
  return {
    hurry: hurried.resolve,
    drain: async (timeoutMs) => {
      const endsAt = clock.now() + timeoutMs
      for (const worker of workers.values()) worker.stop()
      const all = Promise.all([...workers.values()].map((worker) => worker.drained()))
      await bounded(clock, timeoutMs, Promise.race([all, hurried.promise]))
      for (const worker of workers.values()) worker.shutDown()
      await bounded(clock, SETTLE_MS, all)
      // Whoever is told of a dead letter may send, or ask the admin for it: before the end of all calls.
      const inTime = (work: Promise<unknown>): Promise<boolean> =>
        bounded(clock, Math.max(0, endsAt - clock.now()), Promise.race([work, hurried.promise]))
      const settled = [...workers.values()].map((worker) => worker.settled())
      const sent = announced.ended().then(() => underWay.ended())
      await inTime(Promise.all([...settled, sent]))
    },
  }
}

function closeOnSignals(
  close: (options?: CloseOptions) => void,
  logger: Logger,
  clock: Clock | undefined,
): () => void {
  if (clock === undefined) return () => undefined
  const acts: SignalActs = {
    first: (signal) => {
      logger.info(`${signal}: draining`)
      close()
    },
    second: (signal) => {
      logger.info(`${signal}: aborting what still runs`)
      close({ timeoutMs: 0 })
    },
  }
  return onSignals(acts, clock)
}

function relayOf<Tx>({ resolved, parts, closed }: LifecycleOptions<Tx>): Relay | undefined {
  const { outbox } = parts
  if (outbox === undefined) return undefined
  return startRelay({
    ...resolved,
    outbox,
    publish: (rows) => publish(parts, rows, closed.signal),
  })
}

/** Relayed rows go to their queues as the envelopes that they are: same id on every try. */
async function publish<Tx>(
  parts: Parts<Tx>,
  rows: readonly OutboxRow[],
  signal: AbortSignal,
): Promise<readonly Sent[]> {
  const { transport } = parts
  const outcomes = new Array<Sent>(rows.length)
  const byQueue = Map.groupBy(rows.entries(), ([, row]) => row.queue)
  for (const [queue, entries] of byQueue) {
    const envelopes: readonly Envelope[] = entries.map(([, row]) => row.envelope)
    const sent = await faultless(transport, envelopes.length, () =>
      transport.send(queue, envelopes, { signal }),
    )
    for (const [i, [index]] of entries.entries()) {
      const one = sent[i]
      if (one !== undefined) outcomes[index] = one
    }
  }
  return outcomes
}
