import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deadLetterView, deadMessageView, messageView } from '../../src/admin/views.ts'
import { jsonCodec } from '../../src/codec/json.ts'
import type { DeadLetter } from '../../src/model/dead-letter.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { AttemptHistory } from '../../src/model/history.ts'

const queue = { name: 'orders', codec: jsonCodec }

const envelope: Envelope = {
  id: 'm-1',
  body: jsonCodec.encode({ a: 1 }),
  headers: { traceparent: 't' },
  priority: 7,
  idempotencyKey: 'k-1',
}

/** One attempt that counted, one that was throttled, and a life before. */
const history: AttemptHistory = {
  counted: 1,
  crashes: 0,
  throttledSince: 20,
  records: [
    { at: 10, errorClass: 'transient', code: 'HTTP_500', message: 'no' },
    { at: 20, errorClass: 'throttled', code: 'HTTP_429', message: 'later' },
  ],
  redrives: 2,
}

const letter: DeadLetter = {
  envelope,
  queue: 'orders',
  owner: 'team',
  errorClass: 'permanent',
  reason: 'gone',
  history,
  sentAt: 5,
  deadAt: 30,
}

const common = {
  id: 'm-1',
  queue: 'orders',
  payload: { a: 1 },
  headers: { traceparent: 't' },
  idempotencyKey: 'k-1',
  sentAt: 5,
  attempts: history.records,
}

test('A dead letter is shown with all that is known of it.', () => {
  assert.deepEqual(deadLetterView(queue, letter), {
    ...common,
    errorClass: 'permanent',
    reason: 'gone',
    owner: 'team',
    deadAt: 30,
    redrives: 2,
  })
})

test('A message is shown with the attempt that comes next, and a dead one with its last.', () => {
  const stored = { envelope, state: 'scheduled', sentAt: 5, readyAt: 40, history } as const
  const next = { ...common, state: 'scheduled', priority: 7, attempt: 2, readyAt: 40 }
  assert.deepEqual(messageView(queue, stored), next)
  const last = { ...common, state: 'dead', priority: 7, attempt: 1, readyAt: undefined }
  assert.deepEqual(deadMessageView(queue, letter), last)
})

test('A body that is no payload is shown as its text and its own bytes, in each view.', () => {
  // A part of a larger buffer, as a client hands it over.
  const body = new Uint8Array([0x41, 0x7b, 0xff, 0x42]).subarray(1, 3)
  const foreign = { ...envelope, body }
  const shown = { payload: '{\ufffd', bodyBase64: Buffer.from([0x7b, 0xff]).toString('base64') }
  const stored = { envelope: foreign, state: 'ready', sentAt: 5, readyAt: 5, history } as const
  const dead = { ...letter, envelope: foreign }
  const views = [
    messageView(queue, stored),
    deadLetterView(queue, dead),
    deadMessageView(queue, dead),
  ]
  for (const { payload, bodyBase64 } of views) assert.deepEqual({ payload, bodyBase64 }, shown)
  assert.ok(!('bodyBase64' in deadMessageView(queue, letter)))
})

test('The key that is shown is the one that was sent, else what the queue makes of the payload, else the id.', () => {
  const { idempotencyKey: _, ...unkeyed } = envelope
  const keyOf = (sent: Envelope, idempotencyKey?: (payload: unknown) => string): string =>
    deadLetterView(
      { ...queue, ...(idempotencyKey && { idempotencyKey }) },
      { ...letter, envelope: sent },
    ).idempotencyKey
  const broken = (): never => {
    throw new Error('no such field')
  }
  const derived = (payload: unknown): string => `of ${JSON.stringify(payload)}`
  assert.equal(keyOf(envelope, derived), 'k-1')
  assert.equal(keyOf(unkeyed, derived), 'of {"a":1}')
  const others = [undefined, broken, () => '', () => 5 as never].map((own) => keyOf(unkeyed, own))
  assert.deepEqual(others, ['m-1', 'm-1', 'm-1', 'm-1'])
})
