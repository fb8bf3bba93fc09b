import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reasonOf } from '../../src/outbox/fault-reason.ts'

const fault = { retryable: false, outcome: 'notApplied' } as const

test('What a row keeps of a fault has 500 bytes at most, however long the reason is', () => {
  const cause = new Error(`denied ${'ü'.repeat(1_000)}`)
  const reason = reasonOf({ ...fault, code: 'denied', cause })
  assert.match(reason, /^denied: denied ü+/)
  assert.ok(Buffer.byteLength(reason) <= 500)
  assert.ok(Buffer.byteLength(reason) > 450)
})

test('A fault without a reason is its code, and a conflict names who has the key', () => {
  assert.equal(reasonOf({ ...fault, code: 'tooLarge' }), 'tooLarge')
  assert.equal(reasonOf({ ...fault, code: 'conflict' }), 'conflict')
  assert.equal(
    reasonOf({ ...fault, code: 'conflict', id: 'm0' }),
    'conflict: message m0 has its key',
  )
})
