import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, hasCode, silentLogger } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import type { Connector } from '../../src/transport/transport.ts'

const queue = defineQueue({ name: 'q', owner: 'team', payload: z.string() })
const common = { queues: [queue], logger: silentLogger }

interface Watched {
  readonly acts: string[]
  readonly transport: Connector
  readonly store: StoreConnector
}

/** Writes down what is opened, closed and pruned, in order. */
function watched(problems: readonly string[] = []): Watched {
  const acts: string[] = []
  const transport = memory()
  const store = memoryStore()
  const closing = (what: string, close: () => Promise<void>) => async (): Promise<void> => {
    acts.push(`close ${what}`)
    await close()
    acts.push(`${what} is closed`)
  }
  return {
    acts,
    transport: {
      ...transport,
      async connect(context) {
        acts.push('open transport')
        const opened = await transport.connect(context)
        return { ...opened, close: closing('transport', opened.close) }
      },
    },
    store: {
      ...store,
      async connect(context) {
        acts.push('open store')
        const opened = await store.connect(context)
        const prune = async (max: number): Promise<number> => {
          acts.push('prune store')
          return await opened.prune(max)
        }
        return {
          ...opened,
          prune,
          problems: () => problems,
          close: closing('store', opened.close),
        }
      },
    },
  }
}

test('the store is opened before the transport, pruned now and then, and closed after it', async () => {
  const clock = virtualClock()
  const { acts, transport, store } = watched()
  const app = await createMillrace({ ...common, transport, store, clock })
  await app.start()
  await clock.advance(90_000)
  const closed = app.close()
  await clock.advance(1_000)
  await closed
  assert.deepEqual(
    [...new Set(acts)],
    [
      ...['open store', 'open transport', 'prune store'],
      ...['close transport', 'transport is closed', 'close store', 'store is closed'],
    ],
  )
})

test('what is wrong with the store is a reason of health', async () => {
  const app = await createMillrace({
    ...common,
    transport: memory(),
    store: watched(['the store is not well']).store,
  })

  const { ok, reasons } = await app.health()
  assert.equal(ok, false)
  assert.deepEqual(reasons, ['the store is not well'])
  await app.close()
})

test('a store is closed when the transport fails to open, and one that is none is refused', async () => {
  const { acts, store } = watched()
  const transport: Connector = {
    name: 'broken',
    connect: () => Promise.reject(new Error('no such host')),
  }
  await assert.rejects(createMillrace({ ...common, transport, store }), (error: unknown) =>
    hasCode(error, 'MILLRACE_UNAVAILABLE'),
  )
  assert.deepEqual(acts, ['open store', 'close store', 'store is closed'])
  const none: StoreConnector = JSON.parse('{"name":"none"}')
  await assert.rejects(createMillrace({ ...common, transport: memory(), store: none }), /store:/)
})

test('a transport that hangs at its close leaves no store open', async () => {
  const { acts, transport, store } = watched()
  const hanging: Connector = {
    ...transport,
    async connect(context) {
      return { ...(await transport.connect(context)), close: () => new Promise(() => {}) }
    },
  }
  const app = await createMillrace({ ...common, transport: hanging, store })
  await app.close({ timeoutMs: 0 })
  assert.ok(acts.includes('close store'))
})
