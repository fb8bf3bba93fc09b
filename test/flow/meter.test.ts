import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { meter } from '../../src/flow/meter.ts'
import { pause } from '../../src/model/clock.ts'
import type { Store } from '../../src/store/store.ts'
import { connectStore } from '../stores/store-harness.ts'
import { flowStores, freshQueue } from './flow-stores.ts'

const PROCESSES = 5
const RUNS = 40

for (const [name, connector] of flowStores()) {
  test(`Five processes that tell at the same moment lose no run (${name}).`, async (t) => {
    const clock = virtualClock()
    const queue = freshQueue()
    const open = async () => {
      const store = await connectStore(connector)
      t.after(() => store.close())
      // Waits between two tries are real: the store is.
      return meter({
        queue,
        clock: realWaits(clock),
        random: Math.random,
        logger: silentLogger,
        store,
      })
    }
    const meters = await Promise.all(Array.from({ length: PROCESSES }, open))
    for (const [i, one] of meters.entries()) {
      for (let run = 0; run < RUNS; run++) {
        one.began()
        one.ended(i * 10)
      }
    }
    // Some are refused by the others each time, keep what they have, and tell it with the next.
    for (let round = 0; round < 5; round++) await Promise.all(meters.map((one) => one.flush()))
    const fleet = await meters[0]?.fleet()
    assert.equal(fleet?.runs, PROCESSES * RUNS)
    assert.equal(fleet?.handlerMs, 20)
    assert.equal(meters[4]?.own()?.handlerMs, 40)
  })
}

/** Time that stands still, with waits that end. */
function realWaits(clock: ReturnType<typeof virtualClock>) {
  return {
    now: clock.now,
    after: (_ms: number, run: () => void) => {
      const soon = setImmediate(run)
      return () => clearImmediate(soon)
    },
  }
}

function failing(): Pick<Store, 'states'> & { fails: boolean; value: string | undefined } {
  const store = {
    fails: true,
    value: undefined as string | undefined,
    states: {
      read: async () => {
        if (store.fails) throw new Error('away')
        return store.value === undefined ? undefined : { value: store.value, version: 1n }
      },
      swap: async (_name: string, _version: bigint | undefined, value: string) => {
        store.value = value
        return 1n
      },
    },
  }
  return store
}

test('What a store did not take is told later, and the log has it once.', async () => {
  const clock = virtualClock()
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const store = failing()
  const one = meter({ queue: 'q', clock, random: () => 0, logger, store })
  for (let second = 0; second < 60; second++) {
    one.began()
    await clock.advance(1_000)
    one.ended(1_000)
  }
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /queue "q": the store was not told how long handlers take \(away\)/)
  await assert.rejects(one.fleet(), /away/)
  store.fails = false
  await one.flush()
  assert.equal(Math.round((await one.fleet())?.runs ?? 0), 60)
})

test('What others were always faster to write is told the next time.', async () => {
  const clock = virtualClock()
  const store = failing()
  store.fails = false
  const { swap } = store.states
  store.states.swap = async () => undefined as unknown as bigint
  const one = meter({ queue: 'q', clock, random: () => 0, logger: silentLogger, store })
  one.began()
  one.ended(5)
  await Promise.all([one.flush(), clock.advance(10_000)])
  assert.equal(await one.fleet(), undefined)
  store.states.swap = swap
  await one.flush()
  assert.equal((await one.fleet())?.runs, 1)
})

test('A store that did not take the last of it is not said to be tried again: nothing is, after the end.', async () => {
  const clock = virtualClock()
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const one = meter({ queue: 'q', clock, random: () => 0, logger, store: failing() })
  one.began()
  one.ended(5)
  await one.flush()
  assert.deepEqual(lines, [])
})

test('A close tells a slow store within its time how long handlers took.', async () => {
  const clock = virtualClock()
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const queue = defineQueue({ name: 'q', owner: 'team-flow', payload: z.number() })
  const kept = memoryStore()
  const store: StoreConnector = {
    ...kept,
    connect: async (context) => {
      const found = await kept.connect(context)
      const slow = async (name: string) => {
        await pause(clock, 1_000)
        return found.states.read(name)
      }
      return { ...found, states: { ...found.states, read: slow } }
    },
  }
  const transport = memory()
  const app = await createMillrace({ transport, store, queues: [queue], clock, logger })
  app.work(queue, () => undefined)
  await app.start()
  await app.send(queue, 1)
  await clock.advance(100)
  const closing = app.close()
  await clock.advance(5_000)
  await closing
  const look = await createMillrace({ transport, store: kept, queues: [queue], clock, logger })
  const { handlerMs } = await look.admin.scale(queue)
  assert.equal(typeof handlerMs, 'number')
  assert.deepEqual(lines, [])
})

for (const broken of ['', 'paused', '[]', '{"at":1}', '{"at":"1","since":1,"runs":1,"busyMs":1}']) {
  test(`A state that is none of ours is no measure: ${broken || 'nothing'}.`, async () => {
    const store = failing()
    store.fails = false
    store.value = broken
    const one = meter({
      queue: 'q',
      clock: virtualClock(),
      random: () => 0,
      logger: silentLogger,
      store,
    })
    assert.equal(await one.fleet(), undefined)
    one.began()
    one.ended(5)
    await one.flush()
    assert.equal((await one.fleet())?.runs, 1)
  })
}
