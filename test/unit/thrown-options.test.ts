import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MillraceError, PermanentError, ThrottledError, TransientError } from 'millrace'
import { classifyError } from '../../src/model/classify-error.ts'

const classes = [
  ['transient', 'delayMs', TransientError],
  ['throttled', 'retryAfterMs', ThrottledError],
  ['permanent', 'cause', PermanentError],
] as const

for (const [errorClass, option, Thrown] of classes) {
  const messageWith = (options: unknown): string => {
    const error: MillraceError = Reflect.construct(Thrown, ['busy', options])
    assert.ok(error instanceof MillraceError)
    assert.equal(classifyError(error, undefined, 0).errorClass, errorClass)
    return error.message
  }

  test(`A wrong option of a ${errorClass} error is named in its message, and leaves its class alone.`, () => {
    const misspelt = option.slice(0, -2)
    assert.equal(
      messageWith({ [misspelt]: 5, cause: 1 }),
      `busy (unknown option "${misspelt}", ignored: did you mean "${option}"?)`,
    )
    assert.match(messageWith({ zzzzzzzzzz: 5 }), /^busy \(unknown option "z+", ignored: expected /)
    for (const options of [null, 5, 'x', new Error('why')]) {
      assert.match(messageWith(options), /^busy \(options: expected \{ cause.*\}, ignored\)$/)
    }
    assert.equal(messageWith(undefined), 'busy')
    assert.equal(messageWith({ cause: new Error('why') }), 'busy')
  })

  if (option === 'cause') continue
  test(`A ${option} that is no wait is named in the message.`, () => {
    for (const [wait, got] of [
      ['5', 'string'],
      [Number.NaN, 'NaN'],
      [-1, '-1'],
      [null, 'object'],
    ] as const) {
      assert.equal(
        messageWith({ [option]: wait }),
        `busy (${option}: expected a number of ms from 0, got ${got}, ignored)`,
      )
    }
    assert.equal(messageWith({ [option]: 0 }), 'busy')
    assert.equal(messageWith({ [option]: undefined }), 'busy')
  })
}
