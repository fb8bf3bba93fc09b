import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type App, createMillrace, defineQueue, QueueFullError } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { chart } from './chart.ts'
import { nowMs } from './contender.ts'

/** A producer at three times the rate of the workers: what a full queue does to depth, latency and memory. */
export interface OverloadPlan {
  readonly file: string
  readonly seconds: number
  readonly maxDepth: number
  /** Messages that the workers handle in a second: so many side by side, each for a second's share. */
  readonly perSecond: number
}

/** What was seen in one second. */
export interface Second {
  readonly depth: number
  readonly accepted: number
  readonly refused: number
  readonly handled: number
  /** From accepted to handled; 0 when none was. */
  readonly slowestMs: number
  /** Of the heap: what is alive, where Node runs with --expose-gc. */
  readonly memoryMb: number
}

export interface Overload {
  readonly seconds: readonly Second[]
  readonly accepted: number
  readonly handled: number
  readonly refused: number
}

const PRODUCER = 3
const HANDLER_MS = 100
const STEPS = 10

interface Tally {
  accepted: number
  refused: number
  handled: number
  slowestMs: number
}

const none = (): Tally => ({ accepted: 0, refused: 0, handled: 0, slowestMs: 0 })

export async function overload(plan: OverloadPlan): Promise<Overload> {
  const queue = defineQueue({
    name: 'overload',
    owner: 'bench',
    payload: z.object({ sentMs: z.number() }),
    capacity: { maxDepth: plan.maxDepth },
  })
  const app = await createMillrace({ transport: sqlite({ file: plan.file }), queues: [queue] })
  let now = none()
  app.work(
    queue,
    async ({ payload }) => {
      now.slowestMs = Math.max(now.slowestMs, nowMs() - payload.sentMs)
      await sleep(HANDLER_MS)
      now.handled += 1
    },
    { concurrency: Math.max(1, Math.round((plan.perSecond * HANDLER_MS) / 1_000)) },
  )
  await app.start()
  const send = async (): Promise<void> => {
    try {
      await app.send(queue, { sentMs: nowMs() })
      now.accepted += 1
    } catch (error) {
      if (!(error instanceof QueueFullError)) throw error
      now.refused += 1
    }
  }
  const seconds: Second[] = []
  for (let second = 0; second < plan.seconds; second++) {
    await oneSecond(Math.round((PRODUCER * plan.perSecond) / STEPS), send)
    seconds.push(await seen(app, now))
    now = none()
  }
  while (seconds.at(-1)?.depth !== 0) {
    await oneSecond(0, send)
    seconds.push(await seen(app, now))
    now = none()
  }
  await app.close()
  const sum = (of: 'accepted' | 'refused' | 'handled'): number =>
    seconds.reduce((total, second) => total + second[of], 0)
  return { seconds, accepted: sum('accepted'), handled: sum('handled'), refused: sum('refused') }
}

/** In tenths, each as one burst. */
async function oneSecond(each: number, send: () => Promise<void>): Promise<void> {
  const from = nowMs()
  const sends: Promise<void>[] = []
  for (let step = 1; step <= STEPS; step++) {
    for (let at = 0; at < each; at++) sends.push(send())
    await sleep(Math.max(0, from + (step * 1_000) / STEPS - nowMs()))
  }
  await Promise.all(sends)
}

async function seen(app: App, tally: Tally): Promise<Second> {
  const { depth = 0, inFlight = 0 } = await app.admin.stats('overload')
  return { ...tally, depth: depth + inFlight, memoryMb: heapMb() }
}

function heapMb(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 2 ** 20
}

/** Depth, latency and memory over time, one below the other. */
export function overloadChart({ seconds }: Overload, plan: OverloadPlan): string {
  const of = (read: (second: Second) => number): readonly number[] => seconds.map(read)
  const worked = seconds.filter(({ handled }) => handled > 0).length
  const perSecond = seconds.reduce((sum, { handled }) => sum + handled, 0) / Math.max(1, worked)
  const boundMs = (plan.maxDepth / perSecond) * 1_000
  return chart({
    title: `A producer at ${PRODUCER * plan.perSecond} messages a second, workers at ${plan.perSecond}, maxDepth ${plan.maxDepth}`,
    panels: [
      { name: 'messages in the queue', values: of(({ depth }) => depth), line: plan.maxDepth },
      {
        name: 'slowest of those handled, ms (line: maxDepth / rate)',
        values: of(({ slowestMs }) => slowestMs),
        line: boundMs,
      },
      { name: 'refused a second', values: of(({ refused }) => refused) },
      { name: 'live heap of the process, MB', values: of(({ memoryMb }) => memoryMb) },
    ],
  })
}

if (import.meta.main) {
  const [seconds = '240'] = process.argv.slice(2)
  const { mkdtempSync, rmSync } = await import('node:fs')
  const { tmpdir } = await import('node:os')
  const folder = mkdtempSync(join(tmpdir(), 'millrace-overload-'))
  const plan = {
    file: join(folder, 'overload.db'),
    seconds: Number(seconds),
    maxDepth: 2_000,
    perSecond: 200,
  }
  const result = await overload(plan)
  const images = join(import.meta.dirname, '..', 'docs', 'images')
  mkdirSync(images, { recursive: true })
  writeFileSync(join(images, 'overload.svg'), overloadChart(result, plan))
  rmSync(folder, { recursive: true, force: true })
  const { accepted, handled, refused } = result
  console.log(`${accepted} accepted, ${handled} handled, ${refused} refused`)
}
