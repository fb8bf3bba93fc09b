import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger, TransientError, type WorkOptions } from 'millrace'
import { mortal } from '../runtime/mortal.ts'
import { closeNow, type StageOptions, stage } from '../runtime/stage.ts'

/** As long as a lease and the next look for such that have ended. */
const MISSED_MS = 40_000

/** A consumer that lives, and others on the same queue that die with messages in their hands. */
async function fleet(work: Partial<WorkOptions> = {}, queueOptions: StageOptions['queue'] = {}) {
  const scene = await stage({ queue: queueOptions })
  const { app, clock, queue, store, open } = scene
  const seen = { runs: 0, fails: (): unknown => undefined }
  app.work(
    queue,
    () => {
      seen.runs += 1
      const error = seen.fails()
      if (error !== undefined) throw error
    },
    { concurrency: 50, killSwitch: { failures: 3 }, ...work },
  )
  const dies = async (inHand: number): Promise<void> => {
    const life = mortal(store)
    const doomed = await open({ transport: life.connector, logger: silentLogger })
    doomed.work(queue, () => new Promise(() => undefined), { concurrency: inHand })
    const name = (_: unknown, i: number) => ({ orderId: `${clock.now()}-${i}` })
    await doomed.sendBatch(queue, Array.from({ length: inHand }, name))
    const inFlight = async () => (await app.admin.stats(queue)).inFlight ?? 0
    const before = await inFlight()
    await doomed.start()
    await clock.advance(100)
    assert.equal(await inFlight(), before + inHand)
    life.kill()
  }
  const problems = async (): Promise<readonly string[]> => (await app.health()).reasons
  return { ...scene, seen, dies, problems }
}

test('Deaths of several workers within the window stop a consumer that gets their messages; it tries again by itself.', async () => {
  const { app, clock, dies, seen, problems } = await fleet()
  for (let death = 1; death <= 3; death++) {
    await dies(1)
    await clock.advance(5_000)
  }
  await app.start()
  await clock.advance(MISSED_MS)
  assert.match(
    (await problems()).join(),
    /queue "orders": its consumer here is stopped by the kill switch: 3 of 5 runs failed alike \(crashed\)/,
  )
  assert.equal(seen.runs, 3)
  await dies(1)
  await clock.advance(120_000)
  assert.deepEqual(await problems(), [])
  assert.equal(seen.runs, 4)
  await closeNow(app, clock)
})

test('One worker that dies with fifty messages in its hands is one death, and stops no other consumer.', async () => {
  const { app, clock, queue, dies, seen, problems } = await fleet({ killSwitch: true })
  await dies(50)
  await app.start()
  for (let i = 0; i < 10; i++) {
    await clock.advance(10_000)
    assert.deepEqual(await problems(), [])
  }
  assert.equal(seen.runs, 50)
  assert.equal((await app.admin.stats(queue)).depth, 0)
  await closeNow(app, clock)
})

test('A death is counted once, however often its message begins again while its breaker is open.', async () => {
  const { app, clock, dies, seen, problems } = await fleet(
    {},
    { downstream: () => 'bank', breaker: { minimum: 2, openMs: 1_000, scope: 'process' } },
  )
  seen.fails = () => new TransientError('connection refused')
  await dies(2)
  await app.start()
  await clock.advance(MISSED_MS)
  const begun = seen.runs
  await clock.advance(60_000)
  assert.ok(begun > 4 && seen.runs > begun, `${seen.runs} runs`)
  assert.deepEqual(await problems(), [])
  await closeNow(app, clock)
})
