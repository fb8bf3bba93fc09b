import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import {
  createMillrace,
  defineQueue,
  hasCode,
  MillraceError,
  type OptionsError,
  silentLogger,
} from 'millrace'
import { type Intake, type IntakeApp, type IntakeOptions, intake } from 'millrace/http'
import { memory } from 'millrace/memory'
import * as z from 'zod'
import { messageOfError } from '../../src/model/describe-error.ts'

const events = defineQueue({
  name: 'events',
  owner: 'team-test',
  payload: z.object({ n: z.number(), note: z.string().optional() }),
  capacity: { maxDepth: 10, whenFull: 'reject' },
})
const other = defineQueue({ name: 'other', owner: 'team-test', payload: z.unknown() })

async function started(t: TestContext, app: IntakeApp, options: IntakeOptions): Promise<Intake> {
  const door = intake(app, { port: 0, ...options })
  t.after(() => door.close({ timeoutMs: 0 }))
  await door.listen()
  return door
}

async function open(t: TestContext, options: IntakeOptions = {}) {
  const app = await createMillrace({
    transport: memory(),
    queues: [events, other],
    logger: silentLogger,
  })
  t.after(() => app.close())
  const door = await started(t, app, options)
  return { app, door, url: `${door.url}/queues/events/messages` }
}

/** Every field that an answer may have; a missing one reads as undefined and fails its assertion. */
interface Body {
  readonly id: string
  readonly duplicate: boolean
  readonly error: {
    readonly code: string
    readonly message: string
    readonly index?: number
  } & Issues
  readonly results: readonly (Result | undefined)[]
  readonly ok: boolean
  readonly reasons: readonly string[]
}
interface Issues {
  readonly issues: readonly { readonly path: string; readonly message: string }[]
}
type Result = Pick<Body, 'id' | 'duplicate' | 'error'>

interface Answer {
  readonly status: number
  readonly body: Body
  readonly headers: Headers
}

async function call(url: string, init: RequestInit = {}): Promise<Answer> {
  const res = await fetch(url, init)
  return { status: res.status, body: (await res.json()) as Body, headers: res.headers }
}

const post = (url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  call(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

test('a message is stored with its key, delay, priority and trace', async (t) => {
  const { app, url } = await open(t)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const headers = {
    'Idempotency-Key': 'k-1',
    'Millrace-Delay-Ms': '60000',
    'Millrace-Priority': '7',
    traceparent,
    tracestate: 'a=1',
    baggage: 'b=2',
    'x-other': 'stays behind',
  }
  const first = await post(url, { n: 1 }, headers)
  assert.equal(first.status, 202)
  assert.deepEqual(Object.keys(first.body), ['id', 'duplicate'])
  assert.equal(first.body.duplicate, false)
  assert.equal(first.headers.get('x-content-type-options'), 'nosniff')
  const stored = await app.admin.messages.get('events', first.body.id)
  assert.deepEqual(stored?.headers, { traceparent, tracestate: 'a=1', baggage: 'b=2' })
  assert.equal((await app.admin.stats('events')).scheduled, 1)

  assert.deepEqual((await post(url, { n: 1 }, headers)).body, {
    id: first.body.id,
    duplicate: true,
  })
  const conflict = await post(url, { n: 2 }, headers)
  assert.equal(conflict.status, 409)
  assert.equal(conflict.body.error.code, 'MILLRACE_IDEMPOTENCY_CONFLICT')
})

test('broken trace context is left behind, never a reason to refuse', async (t) => {
  const { app, url } = await open(t)
  const { status, body } = await post(
    url,
    { n: 1 },
    { traceparent: 'nonsense', baggage: 'x'.repeat(5_000) },
  )
  assert.equal(status, 202)
  assert.deepEqual((await app.admin.messages.get('events', body.id))?.headers, {})
})

test('what is wrong with a request is said with its status, a code and a message', async (t) => {
  const { door, url } = await open(t, { maxBodyBytes: 1_000, queues: ['events'] })
  const json = { 'content-type': 'application/json' }
  const cases: readonly (readonly [number, string, Promise<Answer>])[] = [
    [400, 'MALFORMED_JSON', post(url, '{')],
    [400, 'MALFORMED_JSON', post(url, '')],
    [422, 'MILLRACE_UNSERIALIZABLE_PAYLOAD', post(url, '{"n":9007199254740993}')],
    [
      400,
      'MALFORMED_JSON',
      call(url, { method: 'POST', headers: json, body: Buffer.from([0x22, 0xff, 0x22]) }),
    ],
    [400, 'BAD_HEADER', post(url, { n: 1 }, { 'Idempotency-Key': 'a b' })],
    [400, 'BAD_HEADER', post(url, { n: 1 }, { 'Millrace-Delay-Ms': '-1' })],
    [400, 'BAD_HEADER', post(url, { n: 1 }, { 'Millrace-Priority': 'high' })],
    [400, 'MILLRACE_INVALID_OPTIONS', post(url, { n: 1 }, { 'Millrace-Priority': '10' })],
    [400, 'BAD_PATH', post(`${door.url}/queues/%ff/messages`, { n: 1 })],
    [404, 'NOT_FOUND', call(door.url)],
    [404, 'NOT_FOUND', post(`${url}/`, { n: 1 })],
    [404, 'MILLRACE_UNKNOWN_QUEUE', post(`${door.url}/queues/nope/messages`, { n: 1 })],
    [404, 'MILLRACE_UNKNOWN_QUEUE', post(`${door.url}/queues/other/messages`, { n: 1 })],
    [405, 'METHOD_NOT_ALLOWED', call(url)],
    [405, 'METHOD_NOT_ALLOWED', call(`${door.url}/healthz`, { method: 'POST' })],
    [413, 'BODY_TOO_LARGE', post(url, { n: 1, note: 'x'.repeat(2_000) })],
    [415, 'UNSUPPORTED_MEDIA_TYPE', post(url, { n: 1 }, { 'content-type': 'text/plain' })],
    [
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      post(url, { n: 1 }, { 'content-type': 'application/json; charset=latin1' }),
    ],
    [415, 'UNSUPPORTED_MEDIA_TYPE', post(url, { n: 1 }, { 'content-encoding': 'gzip' })],
    [422, 'MILLRACE_INVALID_PAYLOAD', post(url, { n: 'one' })],
    [422, 'MILLRACE_UNSERIALIZABLE_PAYLOAD', post(url, '{"n":1e400}')],
  ]
  for (const [status, code, answered] of cases) {
    const { status: got, body, headers } = await answered
    assert.equal(`${got} ${body.error.code}`, `${status} ${code}`)
    assert.ok(body.error.message.length > 5 && !/ {2,}at |\n/.test(body.error.message))
    assert.match(headers.get('content-type') ?? '', /^application\/json/)
  }
  assert.equal((await call(url)).headers.get('allow'), 'POST')
  assert.equal(
    (await post(url, { n: 1 }, { 'content-type': 'application/cloudevents+json; charset=UTF-8' }))
      .status,
    202,
  )
})

test('issues are listed with their paths', async (t) => {
  const { door, url } = await open(t)
  const one = await post(url, { n: 'one', note: 2 })
  assert.deepEqual(
    one.body.error.issues.map((issue) => issue.path),
    ['n', 'note'],
  )
  const batch = await post(`${door.url}/queues/events/messages/batch`, {
    messages: [{ payload: { n: 1 } }, { payload: {} }],
  })
  assert.equal(batch.status, 422)
  assert.equal(batch.body.error.index, 1)
})

test('a batch with one delay is stored whole or not at all', async (t) => {
  const { app, url } = await open(t)
  const good = await post(`${url}/batch`, {
    messages: [{ payload: { n: 1 }, idempotencyKey: 'a' }, { payload: { n: 2 } }],
  })
  assert.equal(good.status, 202)
  assert.equal(good.body.results.length, 2)
  const again = await post(`${url}/batch`, {
    messages: [{ payload: { n: 1 }, idempotencyKey: 'a' }],
  })
  assert.deepEqual(again.body.results, [{ id: good.body.results[0]?.id, duplicate: true }])
  const bad = await post(`${url}/batch`, {
    messages: [{ payload: { n: 3 } }, { payload: { n: 2 }, idempotencyKey: 'a' }],
  })
  assert.equal(bad.status, 409)
  assert.equal(bad.body.error.index, 1)
  assert.equal((await app.admin.stats('events')).depth, 2)
})

test('a batch with different delays has one result for each message', async (t) => {
  const { app, url } = await open(t)
  const messages = [
    { payload: { n: 1 } },
    { payload: { n: 2 }, delayMs: 60_000 },
    { payload: { n: 'x' }, delayMs: 5 },
  ]
  const { status, body } = await post(`${url}/batch`, { messages })
  assert.equal(status, 207)
  assert.equal(body.results[0]?.duplicate, false)
  assert.equal(body.results[1]?.duplicate, false)
  assert.equal(body.results[2]?.error.code, 'MILLRACE_INVALID_PAYLOAD')
  assert.ok(body.results[2]?.error.issues.length)
  const stats = await app.admin.stats('events')
  assert.deepEqual([stats.depth, stats.scheduled], [1, 1])
})

test('a batch of another shape is refused with the place', async (t) => {
  const { url } = await open(t)
  const bodies: readonly unknown[] = [
    [],
    {},
    null,
    { messages: {} },
    { messages: [] },
    { messages: [null] },
    { messages: [{}] },
    { messages: [{ payload: 1, key: 2 }] },
    { messages: [{ payload: 1 }], delayMs: 2 },
    { messages: [{ payload: 1, idempotencyKey: 2 }] },
    { messages: [{ payload: 1, delayMs: '2' }] },
    { messages: Array(10_001).fill({ payload: 1 }) },
  ]
  for (const body of bodies) {
    const answer = await post(`${url}/batch`, body)
    assert.equal(`${answer.status} ${answer.body.error.code}`, '400 BAD_BATCH')
  }
  for (const delayMs of ['2', -1, 1e15]) {
    const messages = [{ payload: { n: 1 } }, { payload: { n: 2 }, delayMs }]
    const { error } = (await post(`${url}/batch`, { messages })).body
    assert.equal(`${error.code} ${error.index}`, 'BAD_BATCH 1')
    assert.match(error.message, /messages\[1\]: delayMs: expected a number from 0 to/)
  }
  const empty = await post(`${url}/batch`, { messages: [] })
  assert.match(empty.body.error.message, /expected at least one message, got an empty list/)
  const keyed = await post(
    `${url}/batch`,
    { messages: [{ payload: { n: 1 } }] },
    { 'Idempotency-Key': 'k' },
  )
  assert.equal(keyed.body.error.code, 'BAD_HEADER')
})

test('a full queue is 429 and says when to come back', async (t) => {
  const { url } = await open(t)
  for (let n = 0; n < 10; n++) assert.equal((await post(url, { n })).status, 202)
  const full = await post(url, { n: 11 })
  assert.equal(`${full.status} ${full.body.error.code}`, '429 MILLRACE_QUEUE_FULL')
  assert.match(full.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
})

test('with tokens only their bearers send, and only they see why it is not ready', async (t) => {
  const token = 'a-good-token'
  const { door, url, app } = await open(t, { tokens: ['another', token] })
  for (const authorization of [
    '',
    'Bearer',
    'Bearer wrong',
    `Basic ${token}`,
    token,
    'Bearer a-good-toke',
  ]) {
    const { status, body, headers } = await post(
      url,
      { n: 1 },
      authorization ? { authorization } : {},
    )
    assert.equal(`${status} ${body.error.code}`, '401 UNAUTHORIZED')
    assert.equal(headers.get('www-authenticate'), 'Bearer')
  }
  const authorization = `Bearer ${token}`
  assert.equal((await post(url, { n: 1 }, { authorization })).status, 202)
  assert.equal((await call(`${door.url}/healthz`)).status, 200)
  await app.close()
  const seen = await call(`${door.url}/readyz`, { headers: { authorization } })
  assert.equal(seen.status, 503)
  assert.ok(seen.body.reasons.length > 0)
  assert.deepEqual((await call(`${door.url}/readyz`)).body, { ok: false })
})

test('an address that others can reach needs tokens', async (t) => {
  const { app } = await open(t)
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'example.test']) {
    assert.throws(
      () => intake(app, { host }),
      (e: Error) => hasCode(e, 'MILLRACE_INVALID_OPTIONS') && /tokens/.test(e.message),
    )
  }
  assert.ok(intake(app, { host: '0.0.0.0', tokens: ['t'] }))
  for (const options of [
    { port: -1 },
    { tokens: [''] },
    { tokens: ['a b'] },
    { queues: ['nope'] },
    { maxBodyBytes: 0 },
  ]) {
    assert.throws(
      () => intake(app, options),
      (e) => hasCode(e, 'MILLRACE_INVALID_OPTIONS'),
    )
  }
})

test('without tokens a web page that points its own name at this machine sends nothing', async (t) => {
  const { door } = await open(t)
  const status = await new Promise((resolve, reject) => {
    const headers = { host: 'evil.test', 'content-type': 'application/json' }
    const req = request(
      `${door.url}/queues/events/messages`,
      { method: 'POST', headers },
      (res) => {
        res.resume()
        resolve(res.statusCode)
      },
    )
    req.on('error', reject)
    req.end('{"n":1}')
  })
  assert.equal(status, 403)
})

test('readiness is what the app says, and health is that the process lives', async (t) => {
  const { door, app } = await open(t)
  await app.start()
  assert.deepEqual(
    await call(`${door.url}/readyz`).then(({ status, body }) => ({ status, body })),
    {
      status: 200,
      body: { ok: true, reasons: [] },
    },
  )
  const head = await fetch(`${door.url}/healthz`, { method: 'HEAD' })
  assert.equal(`${head.status} ${await head.text()}`, '200 ')
})

/** An app whose backend does what the test wants. */
function appThat(send: IntakeApp['send']): IntakeApp {
  return {
    queues: [events],
    send,
    sendBatch: () => Promise.reject(new Error('unused')),
    health: async () => ({ ok: true, reasons: [] }),
  }
}

test('a backend that is away is 503, and neither its address nor a stack is told', async (t) => {
  const logged: string[] = []
  const logger = { ...silentLogger, error: (message: string) => void logged.push(message) }
  const failures: readonly (readonly [Error, string])[] = [
    [
      new MillraceError('MILLRACE_UNAVAILABLE', 'connect ECONNREFUSED 10.0.0.5:5432'),
      '503 MILLRACE_UNAVAILABLE',
    ],
    [
      new MillraceError('MILLRACE_OUTCOME_UNKNOWN', 'lost 10.0.0.5'),
      '503 MILLRACE_OUTCOME_UNKNOWN',
    ],
    [new MillraceError('MILLRACE_CLOSED', 'closed'), '503 MILLRACE_CLOSED'],
    [new Error('bug at 10.0.0.5, password=s3cr3t'), '500 INTERNAL'],
  ]
  for (const [error, expected] of failures) {
    const door = await started(
      t,
      appThat(() => Promise.reject(error)),
      { logger },
    )
    const { status, body, headers } = await post(`${door.url}/queues/events/messages`, { n: 1 })
    assert.equal(`${status} ${body.error.code}`, expected)
    assert.ok(!JSON.stringify(body).includes('10.0.0.5'))
    assert.equal(headers.has('retry-after'), status === 503)
  }
  assert.equal(logged.length, failures.length)
  assert.ok(logged.join().includes('10.0.0.5') && !logged.join().includes('s3cr3t'))
})

test('a backend that does not answer is 503 in time', async (t) => {
  const hanging = appThat(
    (_queue, _payload, options) =>
      new Promise((_resolve, reject) => {
        options?.signal?.addEventListener('abort', () => reject(options.signal?.reason))
      }),
  )
  const door = await started(t, hanging, { sendTimeoutMs: 100 })
  const { status, body } = await post(`${door.url}/queues/events/messages`, { n: 1 })
  assert.equal(`${status} ${body.error.code}`, '503 MILLRACE_OUTCOME_UNKNOWN')
})

/** Sends raw bytes and collects what comes back until the other side closes. */
/** What comes back for these bytes; `ends`: nothing more will come, as a sender says that goes away. */
async function raw(door: Intake, text: string, ends = false): Promise<string> {
  const socket = connect(Number(new URL(door.url).port), '127.0.0.1')
  let got = ''
  socket.on('data', (chunk) => (got += chunk))
  socket.on('error', () => undefined)
  if (ends) socket.end(text)
  else socket.write(text)
  await once(socket, 'close')
  return got
}

test('a body that does not arrive is 408, headers that are too large 431, and noise 400', async (t) => {
  const { door } = await open(t, { requestTimeoutMs: 100 })
  const head =
    'POST /queues/events/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n'
  const [slow, large, noise] = await Promise.all([
    raw(door, `${head}content-length: 10\r\n\r\n{"n"`),
    raw(door, `${head}x-large: ${'x'.repeat(20_000)}\r\n\r\n`),
    raw(door, 'hello\r\n\r\n'),
  ])
  assert.match(slow, /^HTTP\/1\.1 408 [\s\S]*"code":"REQUEST_TIMEOUT"/)
  assert.match(large, /^HTTP\/1\.1 431 [\s\S]*"code":"HEADERS_TOO_LARGE"/)
  assert.match(noise, /^HTTP\/1\.1 400 [\s\S]*"code":"BAD_REQUEST"/)
})

test('a body of unknown length is cut at the limit, and its sender can read why', async (t) => {
  const { url } = await open(t, { maxBodyBytes: 10_000 })
  const body = new ReadableStream({
    start(controller) {
      for (let i = 0; i < 20; i++) controller.enqueue(Buffer.alloc(1_000, 0x20))
      controller.close()
    },
  })
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    duplex: 'half',
  } as RequestInit
  const { status, body: answer } = await call(url, init)
  assert.equal(`${status} ${answer.error.code}`, '413 BODY_TOO_LARGE')
})

test('what the intake takes and the transport does not is 413 too', async (t) => {
  const store = memory()
  const app = await createMillrace({
    transport: {
      ...store,
      connect: async (context) => {
        const inner = await store.connect(context)
        const { traits } = inner
        return { ...inner, traits: { ...traits, limits: { ...traits.limits, bodyBytes: 100 } } }
      },
    },
    queues: [events],
    logger: silentLogger,
  })
  t.after(() => app.close())
  const door = await started(t, app, {})
  const long = { n: 1, note: 'x'.repeat(100) }
  for (const [path, body] of [
    ['messages', long],
    ['messages/batch', { messages: [{ payload: long }] }],
  ] as const) {
    const answer = await post(`${door.url}/queues/events/${path}`, body)
    assert.equal(`${answer.status} ${answer.body.error.code}`, '413 MILLRACE_PAYLOAD_TOO_LARGE')
  }
})

test('closing finishes what it has, takes no more, and is idempotent', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const slow = appThat(async () => {
    arrived.resolve()
    await release.promise
    return { id: 'late', duplicate: false }
  })
  const door = await started(t, slow, {})
  const { url } = door
  const running = post(`${url}/queues/events/messages`, { n: 1 })
  await arrived.promise
  const closed = door.close()
  await assert.rejects(fetch(`${url}/healthz`))
  release.resolve()
  const answer = await running
  assert.equal(answer.body.id, 'late')
  assert.equal(answer.headers.get('connection'), 'close')
  await Promise.all([closed, door.close()])
  await assert.rejects(door.listen(), (e) => hasCode(e, 'MILLRACE_CLOSED'))
})

test('closing cuts what does not finish in time', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const door = await started(
    t,
    appThat(() => {
      arrived.resolve()
      return new Promise(() => undefined)
    }),
    {},
  )
  const running = post(`${door.url}/queues/events/messages`, { n: 1 })
  running.catch(() => undefined)
  await arrived.promise
  await door.close({ timeoutMs: 10 })
  await assert.rejects(running)
})

test('a taken port is a clear error', async (t) => {
  const { app, door } = await open(t)
  const second = intake(app, { port: Number(new URL(door.url).port) })
  await assert.rejects(
    second.listen(),
    (e: Error) =>
      hasCode(e, 'MILLRACE_UNAVAILABLE') && /the port is taken;.*\(EADDRINUSE\)/.test(e.message),
  )
  await second.close()
})

test('a host of another machine is a wrong option', async (t) => {
  const { app } = await open(t)
  const elsewhere = intake(app, { port: 0, host: '192.0.2.1', tokens: ['t'] })
  await assert.rejects(
    elsewhere.listen(),
    (e: Error) => hasCode(e, 'MILLRACE_INVALID_OPTIONS') && /EADDRNOTAVAIL/.test(e.message),
  )
})

test('a sender that stops in the middle of its body is told so', async (t) => {
  const { door } = await open(t)
  const head =
    'POST /queues/events/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n'
  const halves = [`${head}content-length: 100\r\n\r\n{"n"`, `${head}content-le`]
  const [body, headers] = await Promise.all(halves.map((half) => raw(door, half, true)))
  assert.match(body ?? '', /^HTTP\/1\.1 400 [\s\S]*"code":"INCOMPLETE_BODY"/)
  assert.match(headers ?? '', /^HTTP\/1\.1 400 [\s\S]*"code":"BAD_REQUEST"[\s\S]*ended before/)
})

test('every wrong option of an intake is named at once, with the nearest known one, and readable', async (t) => {
  const { app } = await open(t)
  const given = {
    prt: 1,
    token: ['a-secret-token'],
    tokens: ['good', 'not good'],
    queues: ['event', 'nope'],
    maxBodyBytes: '1kb',
    logger: {},
    clock: { now: 1 },
  }
  const error = refused(() => intake(app, given as object))
  assert.deepEqual((error as OptionsError).problems, [
    'unknown option "prt", did you mean "port"?',
    'unknown option "token", did you mean "tokens"?',
    'tokens[1] must have 1 to 1,024 printable ASCII characters without spaces, got a text of 8 characters',
    'queues: the app has no queue "event"; did you mean "events"?',
    'queues: the app has no queue "nope"; it has events, other',
    'logger: expected an object with the functions debug, info, warn, error, got an empty object',
    'clock: expected an object with the functions now, after, got an object',
    'maxBodyBytes: expected an integer from 1 to 67108864, got "1kb"',
  ])
  // Redaction, which every message passes on its way to a terminal, must have nothing to take.
  assert.equal(messageOfError(error), error.message)
})

test('an intake without an app, and tokens that are none, are refused', async (t) => {
  const { app } = await open(t)
  const wrong: readonly (readonly [unknown, unknown, RegExp])[] = [
    [undefined, {}, /app: expected what createMillrace gives/],
    [Promise.resolve(app), {}, /awaited/],
    [app, 'port', /expected an object of options, got "port"/],
    [app, { tokens: undefined }, /tokens is undefined; is the environment variable set\?/],
    [app, { tokens: [] }, /tokens must be a list of at least one text, got an empty list/],
    [app, { tokens: 'abc' }, /tokens must be a list .* got a text of 3 characters/],
    [app, { host: 5 }, /host: expected a name or an address, got 5/],
    [app, { host: '0.0.0.0' }, /"0\.0\.0\.0" can be reached .* add the option tokens/],
    [app, { queues: 'events' }, /queues: expected a list of names, got "events"/],
  ]
  for (const [from, options, expected] of wrong) {
    const error = refused(() => intake(from as never, options as never))
    assert.match(error.message, expected)
    assert.equal(messageOfError(error), error.message)
  }
})

function refused(make: () => unknown): Error {
  try {
    make()
  } catch (error) {
    assert.ok(error instanceof Error && hasCode(error, 'MILLRACE_INVALID_OPTIONS'), String(error))
    return error
  }
  assert.fail('it was accepted')
}
