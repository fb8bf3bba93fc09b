import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closeNow, stage } from '../runtime/stage.ts'
import { turns } from './slot-world.ts'

/** So many orders in a second of virtual time, for so long. */
async function load(
  { app, clock, queue }: Awaited<ReturnType<typeof stage>>,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await app.sendBatch(
      queue,
      Array.from({ length: perSecond }, (_, i) => ({ orderId: `${second}-${i}` })),
    )
    await clock.advance(1_000)
  }
}

test('Handlers side by side follow the load of a whole runtime, and rest.', async () => {
  const scene = await stage()
  const { app, clock, queue, lines } = scene
  let running = 0
  const sawRunning: number[] = []
  app.work(
    queue,
    async () => {
      sawRunning.push(++running)
      await new Promise<void>((resolve) => clock.after(500, resolve))
      running--
    },
    { concurrency: { min: 2, max: 50, targetAgeMs: 5_000 } },
  )
  await app.start()
  // 10 side by side are needed.
  await load(scene, { perSecond: 20, seconds: 240 })
  const said = lines.filter(({ message }) => message.includes('handlers side by side become'))
  const slots = said.map(({ message }) => Number(/become (\d+)/.exec(message)?.[1]))
  assert.ok(slots.length > 0 && slots.length <= 6, String(slots))
  assert.ok(turns(slots) <= 2, String(slots))
  const last = slots.at(-1) ?? 0
  assert.ok(last >= 10 && last <= 20, String(slots))
  assert.ok(Math.max(...sawRunning) <= Math.max(...slots))
  const { ageMs, depth } = await app.admin.stats(queue)
  assert.ok((ageMs ?? 0) <= 1_000 && (depth ?? 0) <= 20, `${depth} wait, ${ageMs} ms`)
  await closeNow(app, clock)
  const before = lines.length
  await clock.advance(60_000)
  assert.equal(lines.length, before, 'a closed app looks at nothing any more')
})

test('What concurrency takes is checked.', async () => {
  const { app, queue, clock } = await stage()
  const wrong: unknown = { concurrency: { min: 5, max: 2, targetAge: 1 } }
  assert.throws(() => app.work(queue, () => undefined, Object(wrong)), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message:
      'work on queue "orders": unknown option "concurrency.targetAge", did you mean "concurrency.targetAgeMs"?; concurrency.max: expected an integer from 5 to 10000, got 2',
  })
  for (const value of [0, 1.5, '5', null, []]) {
    assert.throws(
      () => app.work(queue, () => undefined, Object({ concurrency: value })),
      /concurrency: expected/,
    )
  }
  await closeNow(app, clock)
})
