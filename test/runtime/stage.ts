import { type App, createMillrace, defineQueue, type Logger, type QueueOptions } from 'millrace'
import { memory } from 'millrace/memory'
import { z } from 'zod'
import { virtualClock } from '../../src/testing/virtual-clock.ts'

export const orderSchema = z.object({ orderId: z.string() })
export type OrderSchema = typeof orderSchema

export interface LogLine {
  readonly level: string
  readonly message: string
}

/** One app on memory and a virtual clock, with everything that it said. */
export async function stage(options: StageOptions = {}) {
  const clock = virtualClock()
  const lines: LogLine[] = []
  const queue = defineQueue({
    name: 'orders',
    owner: 'team-orders',
    payload: orderSchema,
    ...options.queue,
  })
  const store = options.transport ?? memory()
  const open = (more: Partial<Parameters<typeof createMillrace>[0]> = {}): Promise<App> =>
    createMillrace({
      transport: store,
      queues: [queue, ...(options.beside ?? [])],
      clock,
      random: options.random ?? seeded(7),
      logger: collector(lines),
      ...options.app,
      ...more,
    })
  const app = await open()
  return { app, clock, queue, lines, open, store }
}

export interface StageOptions {
  readonly queue?: Partial<QueueOptions<OrderSchema>>
  /** Queues besides the one of the stage. */
  readonly beside?: Parameters<typeof createMillrace>[0]['queues']
  readonly app?: Partial<Parameters<typeof createMillrace>[0]>
  readonly transport?: ReturnType<typeof memory>
  readonly random?: () => number
}

function collector(lines: LogLine[]): Logger {
  const at = (level: string) => (message: string) => void lines.push({ level, message })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** A small generator with a seed (mulberry32), so that a failing run can be repeated. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Closes on virtual time too: nothing of a stage may outlive its test. */
export async function closeNow(
  app: App,
  clock: { advance(ms: number): Promise<void> },
): Promise<void> {
  const closed = app.close({ timeoutMs: 0 })
  await clock.advance(1_000)
  await closed
}
