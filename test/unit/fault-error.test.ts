import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue, MillraceError } from 'millrace'
import { z } from 'zod'
import type { Fault } from '../../src/model/fault.ts'
import { faultError } from '../../src/runtime/fault-error.ts'

const queue = defineQueue({ name: 'orders', owner: 'team', payload: z.number() })

function told(fault: Partial<Fault>): MillraceError {
  return faultError(
    { code: 'unavailable', retryable: true, outcome: 'notApplied', ...fault },
    { queue, messageId: 'm1', bytes: 1, limits: { bodyBytes: 2 }, retryAfterMs: () => 1_000 },
  )
}

test('who cannot know whether the message is stored is told so, with its id, whatever the backend said of itself', () => {
  const away = new MillraceError('MILLRACE_UNAVAILABLE', 'the backend did not answer')
  for (const cause of [away, new Error('socket hang up'), undefined]) {
    const error = told({ outcome: 'unknown', cause })
    assert.equal(error.code, 'MILLRACE_OUTCOME_UNKNOWN')
    assert.equal(error.fields['messageId'], 'm1')
    assert.match(error.message, /it may be stored, so send again with the same id/)
  }
  assert.equal(told({ cause: away }), away)
  const closed = new MillraceError('MILLRACE_CLOSED', 'the transport is closed')
  assert.equal(told({ outcome: 'unknown', cause: closed }), closed)
})
