import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Harness } from 'millrace/conformance'
import { codeOf, died, present, released } from '../../src/conformance/acts.ts'
import { alone, crashWith } from '../../src/conformance/promises/crash-acts.ts'
import { type Scope, withScope } from '../../src/conformance/scope.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { seeded } from '../runtime/stage.ts'
import { memoryHarness } from './memory-harness.ts'
import { postgresHarness } from './postgres-harness.ts'
import { postgresServers } from './postgres-servers.ts'
import { redisHarness } from './redis-harness.ts'
import { redisServers, smallestUser } from './redis-servers.ts'
import { nodeFileHarness } from './sqlite-harness.ts'

/** What a message or a key is when it comes a second time: nothing of the first may be left that harms it. */
const harnesses: readonly (readonly [string, () => Harness | Promise<Harness>])[] = [
  ['memory', memoryHarness],
  ['sqlite', nodeFileHarness],
  ...postgresServers().map(
    (server) => [server.name, () => postgresHarness({ server, client: 'pg' })] as const,
  ),
  ...redisServers().map(
    (server) => [server.name, async () => redisHarness(await smallestUser(server))] as const,
  ),
]

for (const [name, openHarness] of harnesses) {
  const check = (title: string, keep: (scope: Scope) => Promise<void>): void => {
    test(`${name}: ${title}`, async (t) => {
      const harness = await openHarness()
      t.after(() => harness.dispose())
      await withScope({ harness, depth: 'quick', random: seeded(7) }, keep)
    })
  }

  check(
    'a message that killed its worker and died is a new one after its redrive',
    async (scope) => {
      const queue = await scope.queue()
      const sent = scope.message()
      await scope.send(scope.near, queue, sent)
      await crashWith(scope, queue, 1)
      const subscription = await scope.subscribe(scope.far, queue)
      const deadly = await scope.one(subscription)
      await scope.settle(subscription, died(deadly))
      const shelf = present(scope.near.shelf)
      const letter = await shelf.get(queue, sent.id)
      assert.deepEqual([letter?.history.counted, letter?.history.crashes], [2, 1])
      await shelf.redrive(queue, [sent.id], { actor: 'on-call', reason: 'mended' })
      const again = await scope.one(subscription)
      assert.equal(again.alone, false)
      const { counted, crashes, records, redrives } = again.history
      assert.deepEqual([counted, crashes, records.length, redrives], [0, 0, 2, 1])
    },
  )

  check('a suspect that waited comes by itself and before those that are ready', async (scope) => {
    const queue = await scope.queue()
    const sent = scope.message()
    await scope.send(scope.near, queue, sent)
    await crashWith(scope, queue, 1)
    const subscription = await scope.subscribe(scope.far, queue)
    const suspect = await scope.one(subscription)
    await scope.settle(subscription, released(suspect, { counted: false, delayMs: 100 }))
    // Somebody looks when its time has come, and takes nothing.
    const browse = present(scope.near.browse)
    await browse.setPaused?.(queue, true)
    await scope.passes(300)
    assert.deepEqual(await scope.receive(subscription), [])
    await scope.send(scope.near, queue, scope.message(), scope.message())
    await browse.setPaused?.(queue, false)
    const first = await alone(scope, subscription)
    assert.deepEqual([first.envelope.id, first.alone], [sent.id, true])
  })

  check('a key whose window has ended knows its second payload, not its first', async (scope) => {
    const queue = await scope.queue()
    const keyed = (fingerprint: string, windowMs: number): Envelope =>
      scope.message({
        idempotencyKey: 'k',
        remember: [{ kind: 'idempotency', key: 'k', fingerprint, windowMs }],
      })
    // So many have ended before it that a send that forgets a few does not come to it.
    const others = Array.from({ length: 40 }, (_, n) =>
      scope.message({
        remember: [{ kind: 'dedupe', key: `d${n}`, fingerprint: undefined, windowMs: 200 }],
      }),
    )
    await scope.send(scope.near, queue, ...others, keyed('first', 300))
    await scope.passes(500)
    const second = keyed('second', 60_000)
    await scope.send(scope.near, queue, second)
    const signal = scope.never
    const [same] = await scope.far.send(queue, [keyed('second', 60_000)], { signal })
    assert.deepEqual(same, { ok: true, id: second.id, duplicate: true })
    const [other] = await scope.far.send(queue, [keyed('first', 60_000)], { signal })
    assert.equal(other && codeOf(other), 'conflict')
  })
}
