import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from 'millrace'
import { sendBatch } from '../../src/http/send-batch.ts'
import { closeNow, stage } from '../runtime/stage.ts'

const payload = { orderId: 'a' }

test('In a batch of several delays each message has its own, and one without a delay none', async () => {
  for (const messages of [
    [{ payload, delayMs: 60_000 }, { payload }],
    [{ payload }, { payload, delayMs: 60_000 }],
    [
      { payload, delayMs: 60_000 },
      { payload, delayMs: 0 },
    ],
  ]) {
    const { app, clock, queue } = await stage()
    const { status, body } = await sendBatch(app, queue, { messages }, {}, silentLogger)
    assert.deepEqual([status, body.results.length], [202, 2])
    const { depth, scheduled } = await app.admin.stats(queue)
    assert.deepEqual([depth, scheduled], [1, 1])
    await closeNow(app, clock)
  }
})

test('A key that a batch does not know is named as far as it fits a line', async () => {
  const { app, clock, queue } = await stage()
  const body = { messages: [{ payload }], ['x'.repeat(1_000)]: 1 }
  await assert.rejects(
    sendBatch(app, queue, body, {}, silentLogger),
    ({ message }: Error) => /unknown key "x{64}";/.test(message) && message.length < 300,
  )
  await closeNow(app, clock)
})
