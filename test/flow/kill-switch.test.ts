import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PermanentError, ThrottledError, type WorkOptions } from 'millrace'
import { memoryStore } from 'millrace/store'
import { closeNow, type StageOptions, stage } from '../runtime/stage.ts'

/** 200 orders, and a handler that fails as it is told. */
async function broken(options: StageOptions = {}, more: WorkOptions = {}) {
  const scene = await stage({
    queue: { retry: { attempts: 3, baseMs: 600_000, maxMs: 600_000 } },
    ...options,
  })
  const { app, clock, queue } = scene
  const world = {
    fails: (): unknown => new TypeError('x is not a function'),
    runs: 0,
    ok: 0,
    most: 0,
  }
  let running = 0
  const handler = async (): Promise<void> => {
    world.runs++
    world.most = Math.max(world.most, ++running)
    await new Promise<void>((resolve) => clock.after(10, resolve))
    running--
    const error = world.fails()
    if (error !== undefined) throw error
    world.ok++
  }
  app.work(queue, handler, { concurrency: 5, killSwitch: true, ...more })
  await app.sendBatch(
    queue,
    Array.from({ length: 200 }, (_, i) => ({ orderId: `o-${i}` })),
  )
  await app.start()
  return { ...scene, world }
}

test('A handler that fails alike stops its consumer, which says so and tries again by itself.', async () => {
  const { app, clock, queue, lines, world } = await broken()
  await clock.advance(1_000)
  assert.ok(world.runs >= 20 && world.runs <= 25, `${world.runs} runs`)
  const { ok, reasons } = await app.health()
  assert.equal(ok, false)
  assert.match(
    reasons.join('\n'),
    /queue "orders": its consumer here is stopped by the kill switch: 20 of 20 runs failed alike \(transient: \w+\); it tries again at 2026-01-01T00:01:00/,
  )
  assert.equal(
    lines.filter(({ level, message }) => level === 'error' && message.includes('kill switch'))
      .length,
    1,
  )
  // Others could have these messages meanwhile: none is held.
  const { inFlight, dead } = await app.admin.stats(queue)
  assert.deepEqual([inFlight, dead], [0, 0])
  const before = world.runs
  world.most = 0
  await clock.advance(65_000)
  assert.equal(world.runs, before + 3, 'three tries, then twice as long')
  assert.equal(world.most, 1)
  world.fails = () => undefined
  await clock.advance(120_000)
  assert.equal((await app.health()).ok, true)
  assert.ok(lines.some(({ message }) => message.includes('its consumer works again')))
  await clock.advance(3_600_000)
  assert.equal(world.ok, 200)
  assert.equal(world.most, 5)
  await closeNow(app, clock)
})

test('A permanent failure of every message buries few of them.', async () => {
  const { app, clock, queue, world } = await broken()
  world.fails = () => new PermanentError('the new code reads the wrong field')
  await clock.advance(30_000)
  const { dead, depth } = await app.admin.stats(queue)
  assert.ok((dead ?? 0) <= 25, `${dead} dead`)
  assert.ok((depth ?? 0) >= 175)
  await closeNow(app, clock)
})

test('Who is told to come later has not failed.', async () => {
  const { app, clock, world } = await broken()
  world.fails = () => new ThrottledError('slowly', { retryAfterMs: 3_600_000 })
  await clock.advance(30_000)
  assert.equal(world.runs, 200)
  assert.equal((await app.health()).ok, true)
  await closeNow(app, clock)
})

test('Resumed by hand, a consumer goes on at once.', async () => {
  const { app, clock, queue, world } = await broken()
  await clock.advance(1_000)
  world.fails = () => undefined
  const before = world.runs
  await app.admin.resume(queue)
  await clock.advance(5_000)
  assert.ok(world.runs >= before + 170, `${world.runs}`)
  assert.equal((await app.health()).ok, true)
  await closeNow(app, clock)
})

test('With a store the resume of another process reaches it; what was resumed before the stop does not.', async () => {
  const store = memoryStore()
  const scene = await broken({ app: { store } })
  const { app, clock, queue, world } = scene
  const other = await scene.open()
  await other.admin.resume(queue)
  await clock.advance(11_000)
  const before = world.runs
  assert.ok(before <= 25)
  world.fails = () => undefined
  await other.admin.resume(queue)
  await clock.advance(6_000)
  assert.ok(world.runs > before + 170, `${world.runs}`)
  await closeNow(other, clock)
  await closeNow(app, clock)
})

test('Without the option nothing stops, and wrong options are refused.', async () => {
  const { app, clock, world } = await broken({}, { killSwitch: false })
  await clock.advance(30_000)
  assert.ok(world.runs >= 200)
  await closeNow(app, clock)
  const { app: next, queue, clock: time } = await stage()
  for (const [killSwitch, message] of [
    ['on', /killSwitch: expected true, false or an object of options, got "on"/],
    [{ failure: 3 }, /unknown option "killSwitch.failure", did you mean "killSwitch.failures"/],
    [
      { share: 0, windowMs: 10 },
      /killSwitch.share: expected a number from 0.01 to 1, got 0; killSw/,
    ],
  ] as const) {
    assert.throws(() => next.work(queue, () => undefined, Object({ killSwitch })), message)
  }
  await closeNow(next, time)
})

test('A stopped consumer tries again when its time has come, whenever it looks for a resume.', async () => {
  const { app, clock, world } = await broken({}, { killSwitch: { resumeAfterMs: 7_000 } })
  await clock.advance(1_000)
  const before = world.runs
  await clock.advance(5_500)
  assert.equal(world.runs, before)
  await clock.advance(1_500)
  assert.ok(world.runs > before)
  await closeNow(app, clock)
})
