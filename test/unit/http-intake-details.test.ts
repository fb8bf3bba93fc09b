import assert from 'node:assert/strict'
import { request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, QueueFullError, silentLogger } from 'millrace'
import { type IntakeApp, type IntakeOptions, intake } from 'millrace/http'
import { memory } from 'millrace/memory'
import * as z from 'zod'

const events = defineQueue({ name: 'events', owner: 'team-test', payload: z.unknown() })
const JSON_TYPE = { 'content-type': 'application/json' }

async function open(t: TestContext, options: IntakeOptions = {}, own: Partial<IntakeApp> = {}) {
  const app = await createMillrace({ transport: memory(), queues: [events], logger: silentLogger })
  t.after(() => app.close())
  const served: IntakeApp = {
    queues: app.queues,
    health: app.health,
    send: app.send,
    sendBatch: app.sendBatch,
    ...own,
  }
  const door = intake(served, { port: 0, ...options })
  t.after(() => door.close({ timeoutMs: 0 }))
  await door.listen()
  return { app, door, url: `${door.url}/queues/events/messages` }
}

test('A body of exactly maxBodyBytes is taken, and none with a byte more, whether its length was told or not.', async (t) => {
  const { url } = await open(t, { maxBodyBytes: 100 })
  const bodyOf = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2))
  const told = async (bytes: number): Promise<number> =>
    (await fetch(url, { method: 'POST', headers: JSON_TYPE, body: bodyOf(bytes) })).status
  const untold = async (bytes: number): Promise<number> => {
    const body = new Blob([bodyOf(bytes)]).stream()
    return (await fetch(url, { method: 'POST', headers: JSON_TYPE, body, duplex: 'half' })).status
  }
  assert.deepEqual([await told(100), await told(101)], [202, 413])
  assert.deepEqual([await untold(100), await untold(101)], [202, 413])
})

test('A batch whose messages have one delay waits for it as a whole.', async (t) => {
  const { app, url } = await open(t)
  const messages = [1, 2].map((payload) => ({ payload, delayMs: 60_000 }))
  const body = JSON.stringify({ messages })
  const { status } = await fetch(`${url}/batch`, { method: 'POST', headers: JSON_TYPE, body })
  const { depth, scheduled } = await app.admin.stats(events)
  assert.deepEqual([status, depth, scheduled], [202, 0, 2])
})

test('Who went away before the backend confirmed is not worked for any longer.', async (t) => {
  const sending = Promise.withResolvers<AbortSignal>()
  const { url } = await open(
    t,
    { sendTimeoutMs: 600_000 },
    {
      send: (_queue, _payload, options) =>
        new Promise((_resolve, reject) => {
          const { signal } = options ?? {}
          assert.ok(signal)
          signal.addEventListener('abort', () => reject(signal.reason))
          sending.resolve(signal)
        }),
    },
  )
  const req = request(url, { method: 'POST', headers: JSON_TYPE })
  req.on('error', () => undefined)
  req.end('1')
  const signal = await sending.promise
  assert.equal(signal.aborted, false)
  const gone = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  req.destroy()
  await gone
  assert.match(String(signal.reason), /the sender went away/)
})

test('Retry-After is in whole seconds, never sooner than the queue said.', async (t) => {
  for (const [retryAfterMs, seconds] of [
    [0, '1'],
    [1_000, '1'],
    [1_001, '2'],
  ] as const) {
    const full = new QueueFullError('events', 10, retryAfterMs)
    const { url } = await open(t, {}, { send: () => Promise.reject(full) })
    const { status, headers } = await fetch(url, { method: 'POST', headers: JSON_TYPE, body: '1' })
    assert.deepEqual([status, headers.get('retry-after')], [429, seconds])
    // What is true now is nothing to keep.
    assert.equal(headers.get('cache-control'), 'no-store')
  }
})

test('Each of several tokens lets send, so that one can be changed without a gap.', async (t) => {
  const tokens = ['the-old-one', 'the-new-one', 'a-third-one']
  const { url } = await open(t, { tokens })
  const statuses: number[] = []
  for (const token of [...tokens, 'another']) {
    const headers = { ...JSON_TYPE, authorization: `Bearer ${token}` }
    statuses.push((await fetch(url, { method: 'POST', headers, body: '1' })).status)
  }
  assert.deepEqual(statuses, [202, 202, 202, 401])
})

test('A dedupe key in the header is remembered, whatever the payload is.', async (t) => {
  const { app, url } = await open(t)
  const send = async (body: string): Promise<unknown> => {
    const headers = { ...JSON_TYPE, 'Millrace-Dedupe-Key': 'd-1' }
    return await (await fetch(url, { method: 'POST', headers, body })).json()
  }
  const first = Object(await send('1'))
  assert.equal(first.duplicate, false)
  assert.deepEqual(await send('2'), { id: first.id, duplicate: true })
  assert.equal((await app.admin.stats(events)).depth, 1)
})

test('Each message of a batch carries the trace of the request, with one delay for all and with several.', async (t) => {
  const { app, url } = await open(t)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  for (const delays of [
    [0, 0],
    [0, 5],
  ]) {
    const body = JSON.stringify({ messages: delays.map((delayMs) => ({ payload: 1, delayMs })) })
    const headers = { ...JSON_TYPE, traceparent }
    const res = await fetch(`${url}/batch`, { method: 'POST', headers, body })
    const { results } = Object(await res.json())
    assert.equal(results.length, 2)
    for (const { id } of results) {
      const stored = await app.admin.messages.get(events, id)
      assert.deepEqual(stored?.headers, { traceparent })
    }
  }
})
