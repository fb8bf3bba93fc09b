import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import { memoryInbox } from 'millrace/testing'
import { closeNow, type StageOptions, stage } from './stage.ts'

const DAY_MS = 86_400_000

type QueueChoice = NonNullable<StageOptions['queue']>

/** A message fails at first; its key is sent again after the window, while it waits for its retry. */
async function sentAgain(
  queueOptions: QueueChoice,
  app: StageOptions['app'] = {},
  transport = memory(),
) {
  const scene = await stage({ queue: queueOptions, app, transport, random: () => 0.999 })
  const { clock, queue, lines } = scene
  let isAway = true
  let effects = 0
  scene.app.work(queue, () => {
    if (isAway) throw new Error('connection refused')
    effects += 1
  })
  await scene.app.start()
  const key = { idempotencyKey: 'o-1' }
  await scene.app.send(queue, { orderId: 'o-1' }, key)
  await clock.advance(2_000)
  isAway = false
  const { duplicate } = await scene.app.send(queue, { orderId: 'o-1' }, key)
  await clock.advance(3_600_000)
  await closeNow(scene.app, clock)
  const warnings = lines.flatMap(({ level, message }) => (level === 'warn' ? [message] : []))
  return { duplicate, effects, warnings: warnings.filter((one) => one.includes('dedupe')) }
}

const SHORT: QueueChoice = {
  dedupe: { windowMs: 1_000 },
  handlerTimeoutMs: 10_000,
  retry: { attempts: 3, baseMs: 60_000 },
}

test('A key that is forgotten while its message is still tried has two effects without an inbox, and the start says so.', async () => {
  assert.deepEqual(await sentAgain(SHORT), {
    duplicate: false,
    effects: 2,
    warnings: [
      'queue "orders": dedupe.windowMs is 1000 ms, and a message may be tried for 210000 ms: an idempotency key that is sent again in between is stored once more, ' +
        'and without an inbox its effect happens twice; give createMillrace an inbox, or a window of 210000 ms or more',
    ],
  })
})

test('With an inbox it has one effect, and nothing is to be said.', async () => {
  const transport = memory()
  const { effects, warnings } = await sentAgain(
    SHORT,
    { inbox: memoryInbox({ transport }) },
    transport,
  )
  assert.deepEqual([effects, warnings], [1, []])
})

test('A window as long as the retries keeps the key, and is not warned of; nor is the default, however long these are.', async () => {
  const enough = { ...SHORT, dedupe: { windowMs: 210_000 } }
  assert.deepEqual(await sentAgain(enough), { duplicate: true, effects: 1, warnings: [] })
  const { warnings: less } = await sentAgain({ ...SHORT, dedupe: { windowMs: 209_999 } })
  assert.equal(less.length, 1)
  const long = { retry: { attempts: 100, baseMs: 3_600_000 } }
  assert.deepEqual((await sentAgain(long)).warnings, [])
  const { warnings } = await sentAgain({ ...long, dedupe: { windowMs: DAY_MS - 1 } })
  assert.match(warnings.join(), /or a window of 86400000 ms or more/)
})
