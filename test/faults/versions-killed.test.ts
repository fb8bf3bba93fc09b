import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createMillrace } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { silentLogger } from '../../src/model/logger.ts'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import { databaseFile } from '../transports/sqlite-harness.ts'
import { until } from '../transports/until.ts'
import { newestQueue, stepQueue } from './versions-queues.ts'

const WORKER = fileURLToPath(new URL('./versions-worker.ts', import.meta.url))
const ENTITIES = 4
const VERSIONS = 150

const running = new Set<ChildProcess>()
afterEach(() => {
  for (const child of running) child.kill('SIGKILL')
})

function startWorker(file: string): ChildProcess {
  const child = spawn(process.execPath, ['--conditions=millrace-source', WORKER, file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  running.add(child)
  child.once('close', () => running.delete(child))
  return child
}

test('workers that sort by version are killed again and again: every step once and in order, never back to an older state', async (t) => {
  const seed = process.env.MILLRACE_SEED ?? String(Date.now())
  t.diagnostic(`seed ${seed}`)
  const { file, dispose } = await databaseFile()
  const look = new DatabaseSync(file)
  look.exec(
    'CREATE TABLE step (at INTEGER PRIMARY KEY, entity TEXT, number INTEGER); CREATE TABLE newest (at INTEGER PRIMARY KEY, entity TEXT, number INTEGER)',
  )
  const app = await createMillrace({
    transport: sqlite({ file }),
    queues: [stepQueue, newestQueue],
    logger: silentLogger,
  })
  const payloads = shuffled(seededRandom(seed))
  await app.sendBatch(stepQueue, payloads)
  await app.sendBatch(newestQueue, payloads)
  const left = async (): Promise<number> => {
    const [steps, newest] = [await app.admin.stats(stepQueue), await app.admin.stats(newestQueue)]
    return [steps, newest].reduce(
      (sum, { depth = 0, inFlight = 0, scheduled = 0 }) => sum + depth + inFlight + scheduled,
      0,
    )
  }
  const all = 2 * payloads.length
  for (const share of [0.8, 0.6, 0.4, 0.2]) {
    const child = startWorker(file)
    await until(
      `${share} of the messages are left`,
      async () => (await left()) <= share * all,
      60_000,
    )
    child.kill('SIGKILL')
    await until('the worker is gone', () => !running.has(child))
  }
  startWorker(file)
  // A message that was in the hands of three of them is dead, and that is right; a person would redrive it.
  const handled = async (): Promise<boolean> => {
    let dead = 0
    for (const queue of [stepQueue, newestQueue]) {
      dead += (await app.admin.deadLetters.redrive(queue, { filter: {} })).matched
    }
    return dead === 0 && (await left()) === 0
  }
  await until('all are handled', handled, 60_000)

  const numbersOf = (table: string, entity: string): number[] =>
    look
      .prepare(`SELECT number FROM ${table} WHERE entity = ? ORDER BY at`)
      .all(entity)
      .map(({ number }) => Number(number))
  for (let entity = 0; entity < ENTITIES; entity++) {
    const steps = numbersOf('step', String(entity))
    assert.deepEqual(
      steps,
      Array.from({ length: VERSIONS }, (_, at) => at + 1),
    )
    const states = numbersOf('newest', String(entity))
    assert.ok(states.every((number, at) => at === 0 || number > (states[at - 1] ?? 0)))
    assert.equal(states.at(-1), VERSIONS)
  }
  await app.close()
  look.close()
  await dispose()
})

function shuffled(random: () => number): { entity: string; number: number }[] {
  return Array.from({ length: ENTITIES * VERSIONS }, (_, at) => ({
    payload: { entity: String(at % ENTITIES), number: 1 + Math.floor(at / ENTITIES) },
    place: random(),
  }))
    .sort((a, b) => a.place - b.place)
    .map(({ payload }) => payload)
}
