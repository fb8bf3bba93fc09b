import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import type { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type DeadLetterPage, hasCode, PartialBatchError } from 'millrace'
import type { z } from 'zod'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import { atHome, byDepth } from '../depth.ts'
import { until } from '../transports/until.ts'
import { recorded } from './crash/recorder.ts'
import { type OpenedPlace, type OrderPlace, openPlace, stepPayload } from './order-place.ts'
import { openThrottles, type Throttles } from './order-throttles.ts'

const WORKER = fileURLToPath(new URL('./order-worker.ts', import.meta.url))
const WORKERS = 3
const KEYS = 12
const DEADLINE_MS = 120_000
/** Of all, one in so many may be dead: of their places nothing is asserted. */
const DEAD_SHARE = 20
/** So far ahead of the effects is the producer: it sends until the end, also while keys wait. */
const AHEAD = 100

/**
 * @param trouble happens now and then between two sends, while workers run
 * @param ofWorkers where they reach the backend in another way than the producer
 */
export async function campaign(
  t: TestContext,
  place: OrderPlace,
  recordFile: string,
  trouble?: () => Promise<void>,
  ofWorkers: OrderPlace = place,
): Promise<void> {
  const seed = process.env.MILLRACE_SEED ?? String(Date.now())
  t.diagnostic(`seed ${seed}`)
  const random = seededRandom(seed)
  const opened = await openPlace(place)
  const throttlesFile = `${place.file}-throttles`
  const throttles = openThrottles(throttlesFile, seed)
  const workers = openWorkers([JSON.stringify(ofWorkers), recordFile, throttlesFile, seed])
  const perKey = byDepth({ quick: 60, full: 120, long: 1_000 })
  const all = perKey * KEYS
  try {
    const areOver = async (): Promise<boolean> => {
      const over = new Set([...effects(opened.db), ...(await deadOf(opened))])
      return over.size >= all
    }
    const producing = produce(opened, throttles, { perKey, random, trouble })
    const faults = byDepth({ quick: 6, full: 10, long: 80 })
    let stops = 0
    let takeovers = 0
    for (let n = 1; n <= faults; n++) {
      const share = Math.floor((all * n) / (faults + 2))
      await until(
        `${share} effects`,
        () => resumed(opened, () => count(opened.db) >= share),
        DEADLINE_MS,
      )
      if (n % 3 === 0) {
        stops += 1
        if (await stopPastLease(opened, workers.oldest(), recordFile, areOver)) takeovers += 1
      } else workers.kill(random)
    }
    await producing
    await until('all effects', () => resumed(opened, areOver), DEADLINE_MS)
    const idle = async (): Promise<boolean> => {
      const { depth = 0, inFlight = 0, scheduled = 0 } = await opened.app.admin.stats(opened.steps)
      return depth + inFlight + scheduled === 0
    }
    await until('the queue is empty', () => resumed(opened, idle), DEADLINE_MS)
    const dead = await deadOf(opened)
    t.diagnostic(`${dead.size} of ${all} died of kills`)
    t.diagnostic(`${takeovers} of ${stops} that were stopped woke up behind another one`)
    assert.ok(dead.size <= all / DEAD_SHARE, `${dead.size} of ${all} are dead`)
    // At home all may be over before the first one has something to stop in.
    assert.ok(takeovers > 0 || atHome, `none of ${stops} woke up behind another one`)
    assertInOrder(opened.db, perKey, dead)
    const { told, beforeOthers, compared, spent } = throttles.assertUncounted(KEYS)
    t.diagnostic(
      `${told} throttles, ${beforeOthers} of them before others of their key, ${compared} compared, ${spent} ended otherwise`,
    )
  } finally {
    workers.close()
    throttles.close()
    await opened.app.close({ timeoutMs: 0 })
    opened.db.close()
  }
}

interface Workers {
  /** One of them. */
  kill(random: () => number): void
  /** It has been up the longest, so it has messages in hand. Undefined while all of them start again. */
  oldest(): ChildProcess | undefined
  close(): void
}

/** One that dies is followed by another one at once. */
function openWorkers(args: readonly string[]): Workers {
  const running: ChildProcess[] = []
  let isClosed = false
  const forget = (child: ChildProcess): void => {
    const at = running.indexOf(child)
    if (at >= 0) running.splice(at, 1)
  }
  const start = (): void => {
    const flags = ['--conditions=millrace-source', '--disable-warning=ExperimentalWarning']
    const child = spawn(process.execPath, [...flags, WORKER, ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    running.push(child)
    child.once('close', () => {
      forget(child)
      if (!isClosed) start()
    })
  }
  for (let n = 0; n < WORKERS; n++) start()
  return {
    kill(random) {
      const victim = running[Math.floor(random() * running.length)]
      if (victim === undefined) return
      forget(victim)
      victim.kill('SIGKILL')
    },
    oldest: () => running[0],
    close() {
      isClosed = true
      for (const child of running) child.kill('SIGKILL')
    },
  }
}

const TROUBLES = 3

type Step = z.output<typeof stepPayload>

/** What has to be sent again, as the error says. Some of it may be stored, which the inbox notices. */
async function unsent(
  app: OpenedPlace['app'],
  steps: OpenedPlace['steps'],
  batch: readonly Step[],
): Promise<readonly Step[]> {
  if (batch.length === 0) return []
  try {
    await app.sendBatch(steps, batch)
    return []
  } catch (error) {
    if (error instanceof PartialBatchError && error.retryable) {
      return batch.filter((_, at) => 'error' in (error.results[at] ?? {}))
    }
    if (isTrouble(error)) return batch
    throw error
  }
}

/** The server is just restarted, or the connection cut. */
function isTrouble(error: unknown): boolean {
  return hasCode(error, 'MILLRACE_UNAVAILABLE') || hasCode(error, 'MILLRACE_OUTCOME_UNKNOWN')
}

interface Producing {
  readonly perKey: number
  readonly random: () => number
  readonly trouble: (() => Promise<void>) | undefined
}

async function produce(
  { app, db, steps }: OpenedPlace,
  throttles: Pick<Throttles, 'stored' | 'troubled'>,
  { perKey, random, trouble }: Producing,
): Promise<void> {
  const numbers = new Map<string, number>()
  let sent = 0
  let troubles = 0
  while (numbers.size < KEYS || [...numbers.values()].some((number) => number < perKey)) {
    const batch: Step[] = []
    for (let n = 0; n < 1 + random() * 15; n++) {
      const key = `key-${Math.floor(random() * KEYS)}`
      const number = (numbers.get(key) ?? 0) + 1
      if (number > perKey) continue
      numbers.set(key, number)
      batch.push({ key, number })
    }
    let left: readonly Step[] = batch
    const isStored = async (): Promise<boolean> => {
      left = await unsent(app, steps, left)
      return left.length === 0
    }
    await until('it is stored', isStored, DEADLINE_MS)
    throttles.stored(batch)
    sent += batch.length
    if (trouble !== undefined && sent > (perKey * KEYS * (troubles + 1)) / (TROUBLES + 1)) {
      troubles += 1
      const since = Date.now()
      await trouble()
      throttles.troubled(since)
    }
    await until('effects', () => sent - count(db) < AHEAD, DEADLINE_MS)
    await wait(5)
  }
}

/** A message that was in the hands of three workers that died is dead, which is right; a person lets its key go on. */
async function resumed(
  { app, steps }: OpenedPlace,
  isDone: () => boolean | Promise<boolean>,
): Promise<boolean> {
  try {
    if (steps.order?.onDead !== 'halt-key') return await isDone()
    const { items } = await app.admin.keys.list(steps)
    const keys = items.map(({ key }) => key)
    if (keys.length > 0) await app.admin.keys.resume(steps, { keys, reason: 'killed' })
    return await isDone()
  } catch (error) {
    if (isTrouble(error)) return false
    throw error
  }
}

/**
 * Stops in its handler, and wakes up when another worker has made the effect that it was about to make, or has buried it. False when
 * it got nothing more before the others had done all there is.
 */
async function stopPastLease(
  opened: OpenedPlace,
  victim: ChildProcess | undefined,
  recordFile: string,
  areOver: () => Promise<boolean>,
): Promise<boolean> {
  if (victim === undefined) return false
  const before = recorded(recordFile).length
  victim.kill('SIGUSR2')
  const news = () => recorded(recordFile).slice(before)
  const isStopped = (): boolean => news().some(({ what }) => what === 'stopped')
  const isGone = (): boolean => victim.exitCode !== null || victim.signalCode !== null
  const ends = async (): Promise<boolean> => isStopped() || isGone() || (await areOver())
  await until('it stops', () => resumed(opened, ends), DEADLINE_MS)
  if (!isStopped()) return false
  const started = news().find((event) => event.what === 'started')
  const [key = '', number = ''] = started?.what === 'started' ? started.key.split(' ') : []
  const isMade = async (): Promise<boolean> =>
    opened.db
      .prepare('SELECT 1 FROM step WHERE key = ? AND number = ?')
      .get(key, Number(number)) !== undefined || (await deadOf(opened)).has(`${key} ${number}`)
  await until('another one does it', () => resumed(opened, isMade), DEADLINE_MS)
  victim.kill('SIGCONT')
  return true
}

function count(db: DatabaseSync): number {
  return Number(db.prepare('SELECT count(*) AS n FROM step').get()?.['n'])
}

/** `key number` of each. */
function effects(db: DatabaseSync): readonly string[] {
  const rows = db.prepare('SELECT key, number FROM step').all()
  return rows.map(({ key, number }) => `${key} ${number}`)
}

/** Where no key can be halted: the dead ones, which nobody waits for. `key number` each. */
async function deadOf({ app, steps }: OpenedPlace): Promise<ReadonlySet<string>> {
  if (steps.order?.onDead === 'halt-key') return new Set()
  const dead = new Set<string>()
  let cursor: string | null = null
  do {
    const page: DeadLetterPage = await app.admin.deadLetters.list(steps, { limit: 100, cursor })
    for (const { payload } of page.items) {
      const { key, number } = stepPayload.parse(payload)
      dead.add(`${key} ${number}`)
    }
    cursor = page.cursor
  } while (cursor !== null)
  return dead
}

/**
 * One that died while its key went on has no place in it: a server that was killed may have forgotten that it is gone, and hands it
 * out once more. Its effect happens once at most like all others.
 */
function assertInOrder(db: DatabaseSync, perKey: number, dead: ReadonlySet<string>): void {
  const all = Array.from({ length: perKey }, (_, at) => at + 1)
  for (let n = 0; n < KEYS; n++) {
    const key = `key-${n}`
    const isDead = (number: number): boolean => dead.has(`${key} ${number}`)
    const rows = db.prepare('SELECT number FROM step WHERE key = ? ORDER BY at').all(key)
    const made = rows.map(({ number }) => Number(number))
    const living = (number: number): boolean => !isDead(number)
    assert.deepEqual(made.filter(living), all.filter(living), key)
    const late = made.filter(isDead)
    assert.equal(new Set(late).size, late.length, `${key}: ${late} were dead`)
  }
}
