import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, type ErrorCode, MillraceError, silentLogger } from 'millrace'
import { intake } from 'millrace/http'
import { memory } from 'millrace/memory'
import { z } from 'zod'
import { refusalOfError } from '../../src/http/refusal-of-error.ts'

const events = defineQueue({ name: 'events', owner: 'team-test', payload: z.unknown() })

async function open(t: TestContext, options: { readonly tokens?: readonly string[] } = {}) {
  const app = await createMillrace({ transport: memory(), queues: [events], logger: silentLogger })
  t.after(() => app.close())
  const door = intake(app, { port: 0, ...options })
  t.after(() => door.close({ timeoutMs: 0 }))
  return { app, door }
}

/** With headers that fetch would not send. */
async function ask(
  url: string,
  method: 'GET' | 'POST',
  headers: IncomingHttpHeaders = {},
): Promise<string> {
  const req = request(url, { method, headers, signal: AbortSignal.timeout(10_000) })
  req.end(method === 'POST' ? '{"n":1}' : undefined)
  const [res] = await once(req, 'response')
  return `${res.statusCode} ${(await res.setEncoding('utf8').toArray()).join('')}`
}

test('An intake may be told to listen twice, and one that is closed while it begins to listen does not.', async (t) => {
  const { door } = await open(t)
  await Promise.all([door.listen(), door.listen()])
  await door.listen()
  assert.match(await ask(`${door.url}/healthz`, 'GET'), /^200 /)
  const { door: late } = await open(t)
  const listening = late.listen()
  await late.close()
  await listening
  assert.equal(late.url, 'http://127.0.0.1:0', 'it has no port')
})

test('The address of an intake on IPv6 is one that can be requested.', async (t) => {
  const { app } = await open(t)
  assert.equal(intake(app, { host: '::1', port: 4000 }).url, 'http://[::1]:4000')
})

test('An intake that closes is not ready any more, also in a server of your own.', async (t) => {
  const { door } = await open(t)
  const server = createServer(door.handler)
  t.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const ready = (): Promise<string> => ask(`http://127.0.0.1:${port}/readyz`, 'GET')
  assert.match(await ready(), /^200 /)
  await door.close()
  assert.match(await ready(), /^503 .*the intake is closing/)
})

test('Each way to say JSON in UTF-8 is taken, and this machine by each of its names.', async (t) => {
  const { app, door } = await open(t)
  await door.listen()
  const { port } = new URL(door.url)
  const json = 'application/json'
  const ways: readonly IncomingHttpHeaders[] = [
    { 'content-type': `${json}; charset="utf-8"` },
    { 'content-type': `${json};charset=UTF8` },
    { 'content-type': 'application/vnd.api+json' },
    { 'content-type': json, 'content-encoding': 'identity' },
    { 'content-type': json, host: `[::1]:${port}` },
    { 'content-type': json, host: '[::1]' },
    { 'content-type': json, host: `localhost:${port}` },
  ]
  for (const headers of ways) {
    const said = await ask(`${door.url}/queues/events/messages`, 'POST', headers)
    assert.match(said, /^202 /, JSON.stringify(headers))
  }
  assert.equal((await app.admin.stats(events)).depth, ways.length)
})

test('Who may not send learns neither which queues there are nor what may be done with them.', async (t) => {
  const { door } = await open(t, { tokens: ['a-token-of-32-letters-a-token-of'] })
  await door.listen()
  for (const path of ['/queues/events/messages', '/queues/none/messages', '/scale/events']) {
    for (const method of ['GET', 'POST'] as const) {
      assert.match(await ask(`${door.url}${path}`, method), /^401 /, `${method} ${path}`)
    }
  }
})

test('What the backend cannot do now is 503 with a time to come back, and its own words stay inside.', () => {
  const logged: string[] = []
  const logger = { ...silentLogger, error: (message: string) => void logged.push(message) }
  const codes: readonly ErrorCode[] = [
    'MILLRACE_UNAVAILABLE',
    'MILLRACE_OUTCOME_UNKNOWN',
    'MILLRACE_DENIED',
    'MILLRACE_BACKEND_FAULT',
    'MILLRACE_DISK_FULL',
    'MILLRACE_SCHEMA_OUTDATED',
    'MILLRACE_SCHEMA_TOO_NEW',
    'MILLRACE_CLOSED',
    'MILLRACE_SHUTTING_DOWN',
  ]
  for (const code of codes) {
    const refusal = refusalOfError(new MillraceError(code, 'at 10.0.0.7'), logger)
    assert.deepEqual([refusal.status, refusal.code], [503, code])
    assert.ok(Number(refusal.headers?.['retry-after']) > 0)
    assert.doesNotMatch(refusal.message, /10\.0\.0\.7/)
  }
  assert.equal(logged.length, codes.length)
  const unknown = new MillraceError('MILLRACE_UNKNOWN_QUEUE', 'no queue "x" here')
  assert.equal(refusalOfError(unknown, logger).status, 404)
})

test('What Node refuses before any handler has a body that says why, too.', async (t) => {
  const { door } = await open(t)
  await door.listen()
  const refusal = async (...head: readonly string[]): Promise<readonly [string, unknown]> => {
    const socket = connect(Number(new URL(door.url).port), '127.0.0.1')
    socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')))
    socket.end(`${head.join('\r\n')}\r\n\r\n`)
    const text = (await socket.setEncoding('utf8').toArray()).join('')
    const [top = '', body = ''] = text.split('\r\n\r\n')
    const { code } = (JSON.parse(body) as { error: { code: unknown } }).error
    return [top.split('\r\n', 1)[0] ?? '', code]
  }
  assert.deepEqual(await refusal('GET /healthz HTTP/1.1'), [
    'HTTP/1.1 400 Bad Request',
    'BAD_REQUEST',
  ])
  assert.deepEqual(
    await refusal('POST /queues/events/messages HTTP/1.1', 'Host: localhost', 'Expect: tea'),
    ['HTTP/1.1 417 Expectation Failed', 'EXPECTATION_FAILED'],
  )
})
