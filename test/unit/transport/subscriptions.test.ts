import assert from 'node:assert/strict'
import { test } from 'node:test'
import { untilEnded } from '../../../src/transport/ends.ts'
import { openSubscriptions } from '../../../src/transport/subscriptions.ts'
import type { Subscription } from '../../../src/transport/transport.ts'

/** One that does nothing but close, and tells so. */
function counted(onClose: () => void, closes: () => void): Subscription {
  return {
    receive: async () => [],
    settle: async () => [],
    resize() {},
    async close() {
      closes()
      onClose()
    },
  }
}

test('What is open closes with its transport, and what has closed before does not again.', async () => {
  const subscriptions = openSubscriptions()
  const closed: string[] = []
  const open = (name: string): Subscription =>
    subscriptions.open((onClose) => counted(onClose, () => closed.push(name)))
  const first = open('first')
  open('second')
  open('third')
  await first.close()
  await subscriptions.close()
  await subscriptions.close()
  assert.deepEqual(closed, ['first', 'second', 'third'])
})

test('One that took a while to open closes with its transport, too, and one that failed to open leaves nothing.', async () => {
  const subscriptions = openSubscriptions()
  let closed = 0
  const make = async (onClose: () => void): Promise<Subscription> =>
    counted(onClose, () => closed++)
  const first = await subscriptions.openLater(make)
  await subscriptions.openLater(make)
  await assert.rejects(
    subscriptions.openLater(() => Promise.reject(new Error('no queue'))),
    /no queue/,
  )
  await first.close()
  assert.equal(closed, 1)
  await subscriptions.close()
  await subscriptions.close()
  assert.equal(closed, 2)
})

test('One that comes about while its transport closes is closed and refused, and so are those that come later.', async () => {
  const subscriptions = openSubscriptions()
  const ready = Promise.withResolvers<void>()
  let closed = 0
  const make = (onClose: () => void): Subscription => counted(onClose, () => closed++)
  const late = subscriptions.openLater(async (onClose) => {
    await ready.promise
    return make(onClose)
  })
  const refused = assert.rejects(late, { code: 'MILLRACE_CLOSED' })
  await subscriptions.close()
  ready.resolve()
  await refused
  assert.equal(closed, 1)
  assert.throws(() => subscriptions.open(make), { code: 'MILLRACE_CLOSED' })
  await assert.rejects(
    subscriptions.openLater(async (onClose) => make(onClose)),
    { code: 'MILLRACE_CLOSED' },
  )
  assert.equal(closed, 1)
})

test('A receive that fails after its end answers empty; one that fails before fails.', async () => {
  const end = new AbortController()
  const signals = [new AbortController().signal, end.signal]
  const fails = async (): Promise<never> => {
    throw new Error('broken')
  }
  await assert.rejects(untilEnded(signals, fails), /broken/)
  const answer = await untilEnded(signals, async (ends) => {
    assert.equal(ends.reached(), false)
    const one = ends.signal()
    assert.equal(ends.signal(), one)
    end.abort()
    assert.equal(ends.reached(), true)
    assert.equal(one.aborted, true)
    return await fails()
  })
  assert.deepEqual(answer, [])
})
