import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, QueueFullError, silentLogger } from 'millrace'
import { type IntakeApp, type IntakeOptions, intake } from 'millrace/http'
import { memory } from 'millrace/memory'
import { virtualClock } from 'millrace/testing'
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

test('Left to itself an intake is http://127.0.0.1:4000, and takes a body of 1 MiB.', async (t) => {
  const { app, url } = await open(t)
  assert.equal(intake(app).url, 'http://127.0.0.1:4000')
  const statuses = [1_048_576, 1_048_577].map(async (bytes) => {
    const body = JSON.stringify('x'.repeat(bytes - 2))
    return (await fetch(url, { method: 'POST', headers: JSON_TYPE, body })).status
  })
  assert.deepEqual(await Promise.all(statuses), [202, 413])
})

test('A batch whose messages have one delay waits for it as a whole.', async (t) => {
  const { app, url } = await open(t)
  const messages = [1, 2].map((payload) => ({ payload, delayMs: 60_000 }))
  const body = JSON.stringify({ messages })
  const { status } = await fetch(`${url}/batch`, { method: 'POST', headers: JSON_TYPE, body })
  const { depth, scheduled } = await app.admin.stats(events)
  assert.deepEqual([status, depth, scheduled], [202, 0, 2])
  // Also when it fails: what one may not say none of them has said.
  const wrong = messages.map((one, i) => ({ ...one, idempotencyKey: ['fine', 'not fine'][i] }))
  const refused = await fetch(`${url}/batch`, {
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify({ messages: wrong }),
  })
  const { error } = Object(await refused.json())
  assert.deepEqual([refused.status, error.index], [400, 1])
  assert.equal((await app.admin.stats(events)).scheduled, 2)
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

test('The scheme of a token is Bearer, however it is written, and the token is all that follows.', async (t) => {
  const { url } = await open(t, { tokens: ['right'] })
  const asked = [
    'bearer right',
    'BEARER  right ',
    'Basic Bearer right',
    'Bearer right more',
    'right',
  ]
  const statuses = asked.map(async (authorization) => {
    const headers = { ...JSON_TYPE, authorization }
    return (await fetch(url, { method: 'POST', headers, body: '1' })).status
  })
  assert.deepEqual(await Promise.all(statuses), [202, 202, 401, 401, 401])
})

test('The process lives while its app is not ready.', async (t) => {
  const health = async () => ({ ok: false, reasons: ['the backend is away'] })
  const { door } = await open(t, {}, { health })
  const said = async (path: string): Promise<unknown> => {
    const res = await fetch(`${door.url}${path}`)
    return [res.status, await res.json()]
  }
  assert.deepEqual(await said('/healthz'), [200, { ok: true }])
  assert.deepEqual(await said('/readyz'), [503, { ok: false, reasons: ['the backend is away'] }])
})

test('A payload that is nested too deep is 422, and a text that only looks like JSON 415.', async (t) => {
  const { url } = await open(t)
  const body = `${'['.repeat(1_001)}${']'.repeat(1_001)}`
  const deep = await fetch(url, { method: 'POST', headers: JSON_TYPE, body })
  assert.equal(deep.status, 422)
  assert.equal(Object(await deep.json()).error.code, 'MILLRACE_UNSERIALIZABLE_PAYLOAD')
  const headers = { 'content-type': 'text/x+json' }
  assert.equal((await fetch(url, { method: 'POST', headers, body: '1' })).status, 415)
})

test('An answer leaves no timer behind.', async (t) => {
  const clock = virtualClock()
  const { url } = await open(t, { clock })
  for (const path of ['', '/batch']) {
    const body = path === '' ? '1' : '{"messages":[{"payload":1}]}'
    const res = await fetch(`${url}${path}`, { method: 'POST', headers: JSON_TYPE, body })
    assert.deepEqual([res.status, clock.nextDueAt()], [202, undefined])
  }
})

/** Opens a connection by hand. */
function dial({ door }: Awaited<ReturnType<typeof open>>, t: TestContext) {
  const socket = connect(Number(new URL(door.url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  t.after(() => socket.destroy())
  return socket
}

test('Connections are at most as many as was said; the next one is closed.', async (t) => {
  const opened = await open(t, { maxConnections: 1 })
  const first = dial(opened, t)
  await once(first, 'connect')
  const second = dial(opened, t)
  await once(second, 'close', { signal: AbortSignal.timeout(10_000) })
  first.write('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n')
  const [answer] = await once(first, 'data')
  assert.match(String(answer), /^HTTP\/1\.1 200 /)
})

test('Whoever goes on sending a body that is too large is cut off, long before the time for a request is over.', async (t) => {
  const opened = await open(t, { maxBodyBytes: 1_000, requestTimeoutMs: 600_000 })
  const socket = dial(opened, t)
  const closed = once(socket, 'close', { signal: AbortSignal.timeout(10_000) })
  socket.resume()
  socket.write(
    'POST /queues/events/messages HTTP/1.1\r\nhost: localhost\r\n' +
      'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
  )
  const more = setInterval(() => socket.write(`3e8\r\n${' '.repeat(1_000)}\r\n`), 1)
  t.after(() => clearInterval(more))
  await closed
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
