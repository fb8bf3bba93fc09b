import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MillraceError, silentLogger } from 'millrace'
import { sendBatch } from '../../src/http/send-batch.ts'
import { PartialBatchError } from '../../src/model/partial-batch-error.ts'
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

test('A backend without batches that are all or nothing answers for each message', async () => {
  const { app, clock, queue } = await stage()
  const error = new MillraceError('MILLRACE_UNAVAILABLE', 'the broker at 10.0.0.7 is away')
  const stored = { id: 'm-1', duplicate: false }
  const partly: typeof app = {
    ...app,
    sendBatch: () =>
      Promise.reject(new PartialBatchError('orders', 'a broker', [stored, { error }])),
  }
  const body = { messages: [{ payload }, { payload }] }
  const answer = await sendBatch(partly, queue, body, {}, silentLogger)
  const [first, second] = answer.body.results
  assert.deepEqual([answer.status, answer.body.results.length, first], [207, 2, stored])
  assert.match(JSON.stringify(second), /MILLRACE_UNAVAILABLE/)
  assert.doesNotMatch(JSON.stringify(second), /10\.0\.0\.7/)
  await closeNow(app, clock)
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
