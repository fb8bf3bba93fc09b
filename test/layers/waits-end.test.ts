import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { changedState } from '../../src/flow/changed-state.ts'
import { resetEverywhere } from '../../src/flow/consumer-switch.ts'
import type { CrashBook } from '../../src/layers/crash-book.ts'
import { deadLetters } from '../../src/layers/dead-letters.ts'
import { suspectMarks } from '../../src/layers/suspect-marks.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { freshHistory } from '../../src/model/history.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { connectStore } from '../stores/store-harness.ts'
import { bare } from './bare.ts'

const { signal } = new AbortController()

test('A redrive that waits for another one ends with the transport.', async () => {
  const clock = virtualClock()
  const random = Math.random
  const store = await connectStore(memoryStore(), clock)
  const context = { signal, clock, random, logger: silentLogger, migrate: 'auto' } as const
  const transport = deadLetters(bare(await memory().connect(context)), { store, clock, random })
  await store.leases.acquire('redrive:q', 'another process', 30_000)
  const redrive = transport.shelf?.redrive('q', ['a'], { actor: 'test', reason: 'test' })
  const outcome = assert.rejects(redrive ?? Promise.resolve(), { code: 'MILLRACE_CLOSED' })
  await clock.advance(200)
  await transport.close()
  await outcome
  assert.equal(clock.nextDueAt(), undefined, 'no timer is left')
})

test('Marks that cannot be taken back are tried once more at the end, and not waited for.', async () => {
  const clock = virtualClock()
  let tries = 0
  const book: CrashBook = {
    read: async () => new Map(),
    write: async (entries) => {
      const isBeginning = [...entries.values()].some(({ runner }) => runner !== undefined)
      if (isBeginning) return
      tries += 1
      throw new Error('the store is away')
    },
    forget: async () => undefined,
  }
  const marks = suspectMarks({ book, clock, me: 'me' })
  const lost = new AbortController()
  const delivery: Delivery = {
    envelope: { id: 'a', body: new Uint8Array(), headers: {}, priority: 0 },
    claim: { expiresAt: undefined, ending: signal, lost: lost.signal },
    ...{ sentAt: 0, deliveries: 2, history: freshHistory, alone: false, fence: undefined },
    ...{ lane: undefined, position: undefined, receipt: undefined },
  }
  await marks.begin([delivery], [])
  lost.abort()
  await clock.advance(10)
  assert.equal(tries, 1)
  assert.notEqual(clock.nextDueAt(), undefined, 'it would be tried again')
  await marks.loseAll()
  await clock.advance(0)
  assert.equal(tries, 2)
  assert.equal(clock.nextDueAt(), undefined, 'no timer is left')
})

test('A state that others change all the time is tried without waits once nobody waits for it.', async () => {
  const clock = virtualClock()
  const closed = new AbortController()
  let swaps = 0
  const states = {
    read: async () => ({ value: '1', version: 1n }),
    swap: async () => {
      swaps += 1
      return undefined
    },
  }
  const read = (value: unknown) => (typeof value === 'number' ? value : undefined)
  const change = (before: number | undefined) => (before ?? 0) + 1
  const options = { states, clock, random: () => 0.5, name: 'n', read, change }
  const changed = changedState({ ...options, closed: closed.signal })
  await clock.advance(0)
  assert.equal(swaps, 1)
  closed.abort()
  assert.equal(await changed, undefined)
  assert.equal(swaps, 10)
  assert.equal(clock.nextDueAt(), undefined)
})

test('A reset asks the store once: where somebody else was faster, that was a reset, too.', async () => {
  let asked = 0
  const states = {
    read: async () => ({ value: 'reset', version: 3n }),
    swap: async () => {
      asked += 1
      return undefined
    },
  }
  await resetEverywhere({ states }, 'q', 0)
  assert.equal(asked, 1)
})
