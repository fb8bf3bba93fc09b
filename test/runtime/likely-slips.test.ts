import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import { closeNow, type StageOptions, stage } from './stage.ts'

/** What the log warns of from the making of the app to the end of its start. */
async function warnings(queue: NonNullable<StageOptions['queue']>): Promise<readonly string[]> {
  const { app, clock, queue: orders, lines } = await stage({ queue })
  app.work(orders, () => undefined)
  assert.deepEqual(lines, [], 'an app that only sends, or looks, is not told')
  await app.start()
  await app.start()
  await closeNow(app, clock)
  return lines.flatMap(({ level, message }) => (level === 'warn' ? [message] : []))
}

test('A handler timeout that only seconds explain is said once at the start, with both values.', async () => {
  assert.deepEqual(await warnings({ handlerTimeoutMs: 20 }), [
    'queue "orders": handlerTimeoutMs is 20 ms, and each run that takes longer fails; where seconds were meant write handlerTimeoutMs: 20000',
  ])
  assert.deepEqual(await warnings({ handlerTimeoutMs: 100 }), [])
})

test('Retries that are over before anything can have come back are said once at the start.', async () => {
  const of = (name: string, value: number, allMs: number): readonly string[] => [
    `queue "orders": retry.${name} is ${value} ms: all 8 attempts are over within ${allMs} ms of waiting, so whatever is away for longer makes messages dead; where seconds were meant write retry.${name}: ${value}000`,
  ]
  assert.deepEqual(await warnings({ retry: { baseMs: 1 } }), of('baseMs', 1, 127))
  assert.deepEqual(await warnings({ retry: { baseMs: 5, maxMs: 60 } }), of('baseMs', 5, 255))
  assert.deepEqual(await warnings({ retry: { maxMs: 10 } }), of('maxMs', 10, 70))
  assert.deepEqual(await warnings({ retry: { baseMs: 20 } }), [])
})

test('What is as it comes, or has no retries, is no slip.', async () => {
  assert.deepEqual(await warnings({}), [])
  assert.deepEqual(await warnings({ retry: { attempts: 1, baseMs: 1 } }), [])
})

test('A start that failed and is tried again says it once.', async () => {
  let fails = 1
  const server = memory()
  const transport = {
    ...server,
    connect: async (context: Parameters<typeof server.connect>[0]) => {
      const real = await server.connect(context)
      const subscribe: typeof real.subscribe = async (...given) => {
        if (fails-- > 0) throw new Error('connection refused')
        return real.subscribe(...given)
      }
      return { ...real, subscribe }
    },
  }
  const { app, clock, queue, lines } = await stage({ transport, queue: { handlerTimeoutMs: 20 } })
  app.work(queue, () => undefined)
  await assert.rejects(app.start())
  await app.start()
  await closeNow(app, clock)
  assert.equal(lines.filter(({ message }) => message.includes('handlerTimeoutMs')).length, 1)
})
