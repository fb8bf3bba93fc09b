import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { appOn, type Place, queueOf, runs } from './kafka-between-app.ts'

/** As many as the worker has in hand, so each of them is between its two steps when it dies. */
const COUNT = 10
const ALL = Array.from({ length: COUNT }, (_, n) => n)
const skip = backendUrl('kafka') === undefined

test('Killed between the confirmed copy of a failed attempt and the commit, Kafka runs at most what was in hand twice, and each effect is made once.', {
  skip,
}, async (t) => {
  const place = await placeOf(t, 'copied')
  const { app, effects } = await killedBetween(t, place)
  const waiting = (await app.admin.stats(queueOf(place))).scheduled ?? 0
  assert.ok(waiting > 0, 'no copy was there when it died')
  start(t, place, 'lives')
  const left = async (): Promise<number> => {
    const { depth = 0, scheduled = 0 } = await app.admin.stats(queueOf(place))
    return (depth ?? 0) + (scheduled ?? 0)
  }
  await until('all effects', () => effects().length >= COUNT, 60_000)
  await until('nothing to be left', async () => (await left()) === 0, 60_000)
  assert.deepEqual(
    effects().toSorted((a, b) => a - b),
    ALL,
  )
  t.diagnostic(`${waiting} copies were there when it died; ${runs(place).length} runs of ${COUNT}`)
})

test('Killed between the confirmed dead letter and the commit, Kafka runs what was in hand again, and has one letter of each.', {
  skip,
}, async (t) => {
  const place = await placeOf(t, 'dead')
  const { app } = await killedBetween(t, place)
  const queue = queueOf(place)
  const dead = (await app.admin.stats(queue)).dead ?? 0
  assert.ok(dead > 0, 'no letter was there when it died')
  start(t, place, 'lives')
  await until('nothing to be left', async () => (await app.admin.stats(queue)).depth === 0, 60_000)
  const { items } = await app.admin.deadLetters.list(queue)
  const letters = items.map(({ idempotencyKey }) => Number(idempotencyKey.split('-')[1]))
  assert.deepEqual(
    letters.toSorted((a, b) => a - b),
    ALL,
  )
  t.diagnostic(`${dead} letters were there when it died; ${runs(place).length} runs of ${COUNT}`)
})

async function placeOf(t: TestContext, ends: Place['ends']): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-between-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = (name: string): string => join(folder, name)
  return {
    ...{ brokers: backendUrl('kafka') ?? '', ends },
    run: `${ends}-${process.pid}-${Date.now().toString(36)}`,
    ...{ storeFile: file('store.db'), effectsFile: file('effects.db'), runsFile: file('runs') },
  }
}

/** Sends all, and lets a worker die with all of them in its hands. */
async function killedBetween(t: TestContext, place: Place): ReturnType<typeof appOn> {
  const opened = await appOn(place)
  t.after(() => opened.app.close({ timeoutMs: 0 }))
  await opened.app.sendBatch(
    queueOf(place),
    ALL.map((n) => ({ n })),
  )
  const [code, signal] = await once(start(t, place, 'dies'), 'exit')
  assert.deepEqual([code, signal], [null, 'SIGKILL'])
  return opened
}

function start(t: TestContext, place: Place, how: 'dies' | 'lives'): ChildProcess {
  const file = new URL('./kafka-between-worker.ts', import.meta.url).pathname
  const args = ['--conditions=millrace-source', file, JSON.stringify(place), how]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  return child
}
