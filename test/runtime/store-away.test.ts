import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, hasCode, type Logger } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { watchedStore } from '../../src/layers/watched-store.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Store } from '../../src/store/store.ts'
import type { Connector } from '../../src/transport/transport.ts'
import { bare } from '../layers/bare.ts'
import { connectStore } from '../stores/store-harness.ts'
import { closeNow } from './stage.ts'

const orders = defineQueue({ name: 'orders', owner: 'team-a', payload: z.string() })

type Mood = 'well' | 'away' | 'silent'

/** A store whose calls can be refused, or never answered. */
function moody(store: Store, mood: () => Mood): Store {
  const changed = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get: (target, name, receiver) => {
        const act: unknown = Reflect.get(target, name, receiver)
        if (typeof act !== 'function') return act
        return async (...given: readonly unknown[]) => {
          if (mood() === 'away') throw new Error('connect ECONNREFUSED')
          if (mood() === 'silent') return new Promise(() => undefined)
          return act.apply(target, given)
        }
      },
    })
  return {
    ...store,
    name: 'the-store',
    keys: changed(store.keys),
    delayed: changed(store.delayed),
    shelf: changed(store.shelf),
    states: changed(store.states),
    diagnose: (error) =>
      String(error).includes('ECONNREFUSED')
        ? { code: 'unavailable', retryable: true, outcome: 'notApplied', cause: error }
        : store.diagnose(error),
  }
}

async function scene() {
  const clock = virtualClock()
  const warnings: string[] = []
  const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) }
  let mood: Mood = 'well'
  const below = memory()
  const transport: Connector = {
    name: 'bare',
    connect: async (context) => bare(await below.connect(context)),
  }
  const kept = memoryStore()
  const store: StoreConnector = {
    ...kept,
    connect: async (context) => moody(await kept.connect(context), () => mood),
  }
  const app = await createMillrace({ transport, store, queues: [orders], clock, logger })
  const become = (next: Mood): void => {
    mood = next
  }
  return { app, clock, warnings, become }
}

test('health names the store that is away, and not the transport', async () => {
  const { app, clock, become } = await scene()
  app.work(orders, () => undefined)
  await app.start()
  await clock.advance(1_000)
  assert.deepEqual((await app.health()).reasons, [])
  become('away')
  await clock.advance(3_000)
  const { reasons } = await app.health()
  const named = /^the store the-store is away since \S+ \(connect ECONNREFUSED\)$/
  assert.ok(
    reasons.some((reason) => named.test(reason)),
    reasons.join(),
  )
  assert.ok(!reasons.some((reason) => reason.includes('transport')), reasons.join())
  await assert.rejects(app.send(orders, 'a', { idempotencyKey: 'k' }), (error) => {
    assert.ok(hasCode(error, 'MILLRACE_UNAVAILABLE'))
    assert.match(String(error), /the store the-store is away \(connect ECONNREFUSED\)/)
    return true
  })
  become('well')
  await clock.advance(10_000)
  assert.deepEqual((await app.health()).reasons, [])
  await closeNow(app, clock)
})

test('a store that is silent is named, too, and nobody who asks how full a queue is waits for it', async () => {
  const { app, clock, become } = await scene()
  app.work(orders, () => undefined)
  await app.start()
  await clock.advance(1_000)
  await app.send(orders, 'a', { delayMs: 60_000 })
  become('silent')
  await clock.advance(10_000)
  const asked = app.health()
  await clock.advance(1_500)
  const { reasons } = await asked
  assert.match(reasons.join(), /the store the-store is away since \S+ \(it does not answer\)/)
  assert.doesNotMatch(reasons.join(), /transport/)
  const stats = app.admin.stats(orders)
  await clock.advance(1_500)
  assert.deepEqual([(await stats).scheduled, (await stats).dead], [undefined, undefined])
  become('well')
  const closing = app.close({ timeoutMs: 0 })
  await clock.advance(60_000)
  await closing
})

test('a relay that gets nowhere says so when it begins, once a minute, and when it is over', async () => {
  const { app, clock, warnings, become } = await scene()
  await app.start()
  await clock.advance(1_000)
  become('away')
  await clock.advance(150_000)
  become('well')
  await clock.advance(5_000)
  const own = warnings.filter((line) => line.includes('delayed messages'))
  assert.deepEqual(
    own.map((line) => line.replace(/\d+ s/, 'N s')),
    [
      'queue "orders": delayed messages wait longer (the store the-store is away (connect ECONNREFUSED))',
      'queue "orders": delayed messages wait longer, for N s now (the store the-store is away (connect ECONNREFUSED))',
      'queue "orders": delayed messages wait longer, for N s now (the store the-store is away (connect ECONNREFUSED))',
      'queue "orders": over after N s: delayed messages wait longer',
    ],
  )
  await closeNow(app, clock)
})

test('what a store refuses is no outage, and a closed one is not away', async () => {
  const clock = virtualClock()
  const store = watchedStore(await connectStore(memoryStore(), clock), clock)
  const refused = await store.shelf.list('', { limit: 0 }).catch((error: unknown) => error)
  assert.ok(hasCode(refused, 'MILLRACE_INVALID_OPTIONS'))
  assert.equal(store.diagnose(refused).code, 'invalid')
  assert.deepEqual(store.problems?.(), [])
  await store.close()
  const closed = await store.prune(1).catch((error: unknown) => error)
  assert.ok(hasCode(closed, 'MILLRACE_CLOSED'))
  assert.deepEqual(store.problems?.(), [])
})
