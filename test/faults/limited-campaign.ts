import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { App } from 'millrace'
import { byDepth } from '../depth.ts'
import { until } from '../transports/until.ts'
import {
  type LimitedPlace,
  limited,
  MAX,
  MAX_PER_KEY,
  noted,
  OWN_MS,
  openLimited,
  type RunEvent,
  SLOT_ENDS_MS,
  STEP_MS,
} from './limited-app.ts'

const WORKER = fileURLToPath(new URL('./limited-worker.ts', import.meta.url))
const KILLS = byDepth({ quick: 2, full: 4, long: 30 })
const MESSAGES = byDepth({ quick: 60, full: 100, long: 1_000 })
const WORKERS = 3
const DEADLINE_MS = 120_000
/** Runs of these take nearly all of their time. */
const LONG_FROM = 100_000
const LONG_MS = 600

type Worker = ChildProcess & { readonly pid: number }

/** When runs ended that did not say so: killed then, or not to be counted on any more. */
type Ends = Map<number, number>

/** Workers are killed and one is stopped beyond the end of its slots, while somebody outside writes down what runs. */
export async function limitedCampaign(place: LimitedPlace): Promise<void> {
  const { recordFile } = place
  const app = await openLimited(place)
  const started: Worker[] = []
  const start = (): Worker => {
    const worker = startWorker(place)
    started.push(worker)
    return worker
  }
  const ends: Ends = new Map()
  try {
    await send(app, MESSAGES, 0, (n) => 50 + ((n * 37) % 400))
    const workers = Array.from({ length: WORKERS }, start)
    for (let kill = 0; kill < KILLS; kill++) {
      const at = kill % WORKERS
      const { pid } = workers[at] ?? assert.fail()
      await until('it runs something', () => openRuns(recordFile, pid).length > 0, DEADLINE_MS)
      ends.set(pid, Date.now())
      const exit = once(workers[at] ?? assert.fail(), 'close')
      process.kill(pid, 'SIGKILL')
      await exit
      workers[at] = start()
    }
    await send(app, 3 * MAX, LONG_FROM, () => LONG_MS)
    await stopOne(recordFile, workers, ends)
    await until('all are handled', () => isHandled(app), DEADLINE_MS)
    await until('no slot is held', async () => (await app.admin.slots(limited))?.held === 0)
    judge(recordFile, ends)
  } finally {
    for (const worker of started) worker.kill('SIGKILL')
    await app.close({ timeoutMs: 1_000 })
  }
}

function startWorker(place: LimitedPlace): Worker {
  const args = ['--conditions=millrace-source', WORKER, JSON.stringify(place)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const { pid } = child
  assert.ok(pid)
  return Object.assign(child, { pid })
}

async function send(
  app: App,
  count: number,
  from: number,
  takesMs: (n: number) => number,
): Promise<void> {
  const payloads = Array.from({ length: count }, (_, i) => {
    const n = from + i
    return { n, tenant: `t${n % 4}`, takesMs: takesMs(n) }
  })
  await app.sendBatch(limited, payloads)
}

/** Until its slots have been free for others for a while; then it goes on, and must be told. */
async function stopOne(file: string, workers: readonly Worker[], ends: Ends): Promise<void> {
  let stopped: { readonly worker: Worker; readonly at: number } | undefined
  await until(
    'one is stopped while it runs',
    async () => {
      const [run] = openRuns(file).filter(({ n, at }) => n >= LONG_FROM && Date.now() - at < 300)
      const worker = workers.find(({ pid }) => pid === run?.pid)
      if (run === undefined || worker === undefined) return false
      worker.kill('SIGSTOP')
      const at = Date.now()
      await wait(50)
      if (openRuns(file, run.pid).some((one) => hasMuchLeft(one, at))) stopped = { worker, at }
      else worker.kill('SIGCONT')
      return stopped !== undefined
    },
    DEADLINE_MS,
  )
  assert.ok(stopped)
  const { worker, at } = stopped
  const held = openRuns(file, worker.pid)
  ends.set(worker.pid, Date.now() + OWN_MS)
  await wait(SLOT_ENDS_MS + 1_500)
  worker.kill('SIGCONT')
  const areOver = (): boolean => {
    const open = new Set(openRuns(file, worker.pid).map(({ run }) => run))
    return held.every(({ run }) => !open.has(run))
  }
  await until('what it held is over', areOver)
  worker.kill('SIGKILL')
  const seen = noted(file)
  const told = new Set(seen.filter(({ what }) => what === 'told').map(({ run }) => run))
  assert.deepEqual(
    held.filter((run) => hasMuchLeft(run, at) && !told.has(run.run)),
    [],
    'not told',
  )
}

/**
 * Stopped at this moment it had several of its steps before it. One that is stopped in its last step, as some are on a busy machine,
 * comes to its end when it wakes up, before anybody can tell it.
 */
function hasMuchLeft({ n, at }: RunEvent, stoppedAt: number): boolean {
  return n >= LONG_FROM && stoppedAt - at < LONG_MS - 4 * STEP_MS
}

function openRuns(file: string, pid?: number) {
  const seen = noted(file)
  const over = new Set(seen.filter(({ what }) => what === 'end').map(({ run }) => run))
  return seen.filter(
    (one) => one.what === 'begin' && !over.has(one.run) && (pid === undefined || one.pid === pid),
  )
}

/** A message that was in the hands of three that died is dead, and that is right; a person would redrive it. */
async function isHandled(app: App): Promise<boolean> {
  const { matched } = await app.admin.deadLetters.redrive(limited, { filter: {} })
  const { depth = 0, inFlight = 0, scheduled = 0 } = await app.admin.stats(limited)
  return matched === 0 && depth + inFlight + scheduled === 0
}

function judge(file: string, ends: Ends): void {
  const seen = noted(file)
  const endOf = new Map(seen.filter(({ what }) => what === 'end').map(({ run, at }) => [run, at]))
  const handled = new Set<number>()
  const steps: { readonly at: number; readonly tenant: string; readonly by: 1 | -1 }[] = []
  for (const { what, run, pid, at, n, tenant } of seen) {
    if (what !== 'begin') continue
    const over = Math.min(
      endOf.get(run) ?? Number.POSITIVE_INFINITY,
      ends.get(pid) ?? Number.POSITIVE_INFINITY,
    )
    assert.ok(Number.isFinite(over), `run ${run} of message ${n} never ended`)
    if (endOf.has(run)) handled.add(n)
    steps.push({ at, tenant, by: 1 }, { at: Math.max(at, over), tenant, by: -1 })
  }
  assert.equal(handled.size, MESSAGES + 3 * MAX)
  steps.sort((a, b) => a.at - b.at || a.by - b.by)
  const running = new Map<string, number>()
  let [all, most, mostOfKey] = [0, 0, 0]
  for (const { tenant, by } of steps) {
    all += by
    const ofKey = (running.get(tenant) ?? 0) + by
    running.set(tenant, ofKey)
    most = Math.max(most, all)
    mostOfKey = Math.max(mostOfKey, ofKey)
  }
  assert.deepEqual([most, mostOfKey], [MAX, MAX_PER_KEY], 'reached, and never passed')
}
