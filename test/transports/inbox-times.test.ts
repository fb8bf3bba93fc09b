import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Inbox, type InboxConnector, sqliteInbox } from 'millrace/inbox'
import { memoryInbox, virtualClock } from 'millrace/testing'
import { inboxContext } from './inbox-subjects.ts'
import { databaseFile } from './sqlite-harness.ts'

const key = (name: string) => ({ queue: 'orders', key: name })
const work = { leaseMs: 10_000, effect: () => undefined, last: () => true }
const TTL_MS = 1_000

/** Inboxes that go by the app's clock. */
const clients: readonly (readonly [
  name: string,
  given: (file: string) => InboxConnector<never>,
])[] = [
  ['memory', () => memoryInbox({ ttlMs: TTL_MS })],
  ['sqlite', (file) => sqliteInbox({ file, ttlMs: TTL_MS })],
]

for (const [name, given] of clients) {
  test(`${name}: a key is known for ttlMs, then it is as new, and pruned as one of so many`, async () => {
    const { file, dispose } = await databaseFile()
    const clock = virtualClock()
    const inbox: Inbox<never> = await given(file).connect(inboxContext({ clock }))
    const keys = ['a', 'b', 'c'].map(key)
    await inbox.record(keys)
    await clock.advance(TTL_MS - 1)
    assert.deepEqual(await inbox.seen(keys), [true, true, true])
    assert.deepEqual(await inbox.run(key('a'), work), { kind: 'duplicate' })
    assert.equal(await inbox.prune(10), 0)
    await clock.advance(1)
    assert.deepEqual(await inbox.seen(keys), [false, false, false])
    assert.equal((await inbox.run(key('a'), work)).kind, 'committed')
    assert.deepEqual([await inbox.prune(1), await inbox.prune(10)], [1, 1])
    assert.deepEqual(await inbox.seen(keys), [true, false, false])
    await inbox.close()
    await dispose()
  })
}

test('memory: a run waits for another one of its key for as long as its lease', async () => {
  const clock = virtualClock()
  const inbox = await memoryInbox().connect(inboxContext({ clock }))
  const first = inbox.run(key('a'), {
    ...work,
    effect: () => new Promise<void>((resolve) => clock.after(5_000, resolve)),
  })
  const second = inbox.run(key('a'), { ...work, leaseMs: 1_000 })
  const third = inbox.run(key('a'), work)
  await clock.advance(1_000)
  assert.deepEqual(await second, { kind: 'lost' })
  await clock.advance(4_000)
  assert.deepEqual([(await first).kind, (await third).kind], ['committed', 'duplicate'])
})
