import assert from 'node:assert/strict'
import {
  type App,
  createMillrace,
  defineQueue,
  type QueueOptions,
  silentLogger,
  ThrottledError,
  TransientError,
} from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import type { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { type OrderedCall, orderedRuns } from '../flow/ordered-runs.ts'
import { closeNow } from '../runtime/stage.ts'

const payload = z.object({ key: z.string(), n: z.number() })

export type OrderLimits = Pick<QueueOptions<typeof payload>, 'rateLimit' | 'concurrencyLimit'>
export type HostState = 'well' | 'sick' | 'throttles'

export interface OrderedFleetOptions {
  readonly clock: ReturnType<typeof virtualClock>
  readonly random: () => number
  readonly limits: OrderLimits
  /** Half of them call the first host, the others the second one. */
  readonly keys: number
  readonly perKey: number
}

/** Apps with one queue in order, in front of two hosts that come and go. */
export interface OrderedFleet {
  /** Given back without a run. */
  readonly waits: number
  set(host: number, state: HostState): void
  /** One app goes with what it has in hand, another comes. */
  replace(): Promise<void>
  /** Whether all of this host are done, of all without one. */
  isDone(host?: number): boolean
  verdict(): Promise<void>
  close(): Promise<void>
}

const APPS = 2
const HANDLER_MAX_MS = 500
const RETRY_AFTER_MS = 5_000
const FAILS_BY_ITSELF = 0.05

export async function orderedFleet(options: OrderedFleetOptions): Promise<OrderedFleet> {
  const { clock, random, keys, perKey } = options
  const queue = queueWith(options.limits)
  const names = Array.from({ length: keys }, (_, at) => `key-${at}`)
  const states: HostState[] = ['well', 'well']
  const seen = orderedRuns()
  const failures = new Map<string, number>()
  const blamed: string[] = []
  const [transport, store] = [memory(), memoryStore()]
  let released = 0

  const failureOf = ({ key }: OrderedCall): Error | undefined => {
    const state = states[hostOf(key)]
    if (state === 'throttles') return new ThrottledError('429', { retryAfterMs: RETRY_AFTER_MS })
    if (state === 'sick' || random() < FAILS_BY_ITSELF) return new TransientError('503')
    return undefined
  }
  const handle = async (call: OrderedCall, attempt: number, signal: AbortSignal): Promise<void> => {
    const message = `${call.key} ${call.n}`
    const failed = failures.get(message) ?? 0
    if (attempt > 1 + failed) blamed.push(`${message}: attempt ${attempt}, ${failed} failures`)
    const run = seen.began(call, attempt)
    await new Promise<void>((resolve) => {
      clock.after(random() * HANDLER_MAX_MS, resolve)
      signal.addEventListener('abort', () => resolve())
    })
    const error = signal.aborted ? new Error('interrupted') : failureOf(call)
    run.end = error === undefined ? 'done' : 'refused'
    if (error instanceof TransientError) failures.set(message, failed + 1)
    if (error !== undefined) throw error
  }
  const open = async (): Promise<App> => {
    const parts = { transport, store, queues: [queue], logger: silentLogger }
    const app = await createMillrace({ ...parts, clock, random })
    app.work(queue, ({ payload: call, attempt }, ctx) => handle(call, attempt, ctx.signal), {
      concurrency: 4,
    })
    await app.start()
    return app
  }
  const leave = async (app: App): Promise<void> => {
    await closeNow(app, clock)
    released += app.counters()['steps']?.released ?? 0
  }

  const apps: App[] = []
  for (let n = 0; n < APPS; n++) apps.push(await open())
  for (let n = 1; n <= perKey; n++) {
    await apps[0]?.sendBatch(
      queue,
      names.map((key) => ({ key, n })),
    )
  }
  return {
    get waits() {
      return released - seen.refused()
    },
    set: (host, state) => {
      states[host] = state
    },
    replace: async () => {
      const gone = apps.shift()
      if (gone !== undefined) await leave(gone)
      apps.push(await open())
    },
    isDone: (host) =>
      names
        .filter((key) => host === undefined || hostOf(key) === host)
        .every((key) => seen.done(key).length >= perKey),
    verdict: async () => {
      seen.assertInOrder(names, perKey)
      assert.deepEqual(blamed, [])
      const stats = await apps[0]?.admin.stats(queue)
      const { depth, scheduled, inFlight, dead } = stats ?? {}
      assert.deepEqual([depth, scheduled, inFlight, dead], [0, 0, 0, 0])
    },
    close: async () => {
      for (const app of apps) await leave(app)
    },
  }
}

function queueWith(limits: OrderLimits) {
  return defineQueue({
    name: 'steps',
    owner: 'team-property',
    payload,
    orderingKey: ({ key }) => key,
    onDead: 'continue',
    // None of them dies, however often it fails.
    retry: { attempts: 1_000, baseMs: 50, maxMs: 2_000 },
    downstream: ({ key }) => `host-${hostOf(key)}`,
    breaker: { minimum: 3, windowMs: 10_000, openMs: 1_000, openMaxMs: 8_000 },
    gate: { startPerSecond: 5, stepMs: 1_000 },
    ...limits,
  })
}

function hostOf(key: string): number {
  return Number(key.slice('key-'.length)) % 2
}
