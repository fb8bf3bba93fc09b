import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Envelope } from '../../../src/model/envelope.ts'
import { type EnvelopeBounds, MOMENT_MAX_MS, refusalOf } from '../../../src/transport/refusal.ts'

const limits = { bodyBytes: 4, sendBatch: 1, receiveBatch: 1, settleBatch: 1 }
const bounds: EnvelopeBounds = { limits, delay: { maxMs: 1_000 }, priorities: 10 }
const plain: Envelope = { id: 'a', body: new Uint8Array(4), headers: {}, priority: 0 }

function judged(change: Partial<Envelope>, by: EnvelopeBounds = bounds): string {
  const refusal = refusalOf({ ...plain, ...change }, by)
  if (refusal === undefined) return 'taken'
  return refusal.ok ? 'ok' : `${refusal.fault.code}, ${refusal.fault.outcome}`
}

test('What is within the bounds is taken, to the last one.', () => {
  const taken: readonly Partial<Envelope>[] = [
    {},
    { priority: 9 },
    { delayMs: 1_000 },
    { readyAt: MOMENT_MAX_MS },
    { readyAt: -MOMENT_MAX_MS * 2 },
    { delayMs: 0, readyAt: 5 },
  ]
  for (const change of taken) assert.equal(judged(change), 'taken', JSON.stringify(change))
})

test('What is beyond a bound is refused, with nothing applied.', () => {
  assert.equal(judged({ body: new Uint8Array(5) }), 'tooLarge, notApplied')
  const invalid: readonly Partial<Envelope>[] = [
    { id: '' },
    { id: 'a b' },
    { priority: 10 },
    { priority: -1 },
    { priority: 0.5 },
    { delayMs: -1 },
    { delayMs: 1_001 },
    { delayMs: Number.NaN },
    { readyAt: Number.NaN },
    { readyAt: Number.POSITIVE_INFINITY },
    { readyAt: MOMENT_MAX_MS + 1 },
    { delayMs: 1, readyAt: 1 },
  ]
  for (const change of invalid) {
    assert.equal(judged(change), 'invalid, notApplied', JSON.stringify(change))
  }
})

test('Where nothing can wait, only what is ready at once is taken.', () => {
  const none = { ...bounds, delay: 'none' } as const
  assert.equal(judged({ delayMs: 0 }, none), 'taken')
  assert.equal(judged({ delayMs: 1 }, none), 'invalid, notApplied')
  assert.equal(judged({ readyAt: 1 }, none), 'invalid, notApplied')
})
