import assert from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, LookupFunction } from 'node:net'
import { type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { hasCode, type Message, type OptionsError, ThrottledError } from 'millrace'
import { HttpStatusError, type HttpTargetOptions, httpTarget } from 'millrace/http'
import { virtualClock } from 'millrace/testing'
import { classifyError } from '../../src/model/classify-error.ts'
import { messageOfError } from '../../src/model/describe-error.ts'
import { makeCertificates } from '../faults/certificates.ts'

interface Received {
  readonly req: IncomingMessage
  readonly body: string
}

interface Receiver {
  readonly url: string
  readonly port: number
  readonly received: Received[]
  readonly server: Server
}

/** A real receiver on loopback, gone when the test ends. */
async function receiver(
  t: TestContext,
  answer: (res: ServerResponse, req: IncomingMessage) => void,
): Promise<Receiver> {
  const received: Received[] = []
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      received.push({ req, body: Buffer.concat(chunks).toString() })
      answer(res, req)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, received, server }
}

const message = (over: Partial<Message<unknown>> = {}): Message<unknown> => ({
  id: 'm-1',
  payload: { a: 1 },
  idempotencyKey: 'key-1',
  attempt: 2,
  headers: {},
  sentAt: 0,
  ...over,
})

interface RunOptions extends HttpTargetOptions<unknown> {
  readonly signal?: AbortSignal
  readonly message?: Message<unknown>
}

async function run(t: TestContext, url: string, options: RunOptions = {}): Promise<void> {
  const { signal = new AbortController().signal, message: sent = message(), ...rest } = options
  const target = httpTarget(url, { allowPrivateAddresses: true, ...rest })
  t.after(target.close)
  return target(sent, { signal })
}

/** The class and code that the runtime will see, with the wait in ms; `ok` when it did not fail. */
async function outcome(t: TestContext, url: string, options: RunOptions = {}): Promise<string> {
  try {
    await run(t, url, options)
    return 'ok'
  } catch (error) {
    const { errorClass, code, delayMs } = classifyError(error, undefined, Date.UTC(2026, 0, 1))
    return [errorClass, code, ...(delayMs === undefined ? [] : [delayMs])].join(' ')
  }
}

test('the receiver gets payload, key, trace and the number of the attempt', async (t) => {
  const { url, received } = await receiver(t, (res) => res.end())
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await run(t, `${url}/hook?x=1`, {
    // What must be right stays so.
    headers: { 'X-Own': 'yes', 'Content-Length': '2' },
    message: message({
      headers: { traceparent, tracestate: 'a=1', baggage: 'b=2', private: 'no' },
    }),
  })
  const [{ req, body }] = received as [Received]
  assert.equal(`${req.method} ${req.url} ${body}`, 'POST /hook?x=1 {"a":1}')
  assert.equal(req.headers['content-type'], 'application/json')
  assert.equal(req.headers['idempotency-key'], 'key-1')
  assert.equal(req.headers['millrace-message-id'], 'm-1')
  assert.equal(req.headers['millrace-attempt'], '2')
  assert.equal(req.headers.traceparent, traceparent)
  assert.equal(
    `${req.headers.tracestate} ${req.headers.baggage} ${req.headers['x-own']}`,
    'a=1 b=2 yes',
  )
  assert.equal(req.headers.private, undefined)
  assert.equal(req.headers['webhook-signature'], undefined)
})

test('url, body and headers may depend on the message, and a key of any characters travels', async (t) => {
  const { url, received } = await receiver(t, (res) => res.end())
  const target = httpTarget<{ path: string }>((m) => `${url}/${m.payload.path}`, {
    allowPrivateAddresses: ['127.0.0.0/8'],
    method: 'PUT',
    body: () => 'plain',
    headers: (m) => ({ 'content-type': 'text/plain', 'x-payload': m.payload.path }),
  })
  t.after(target.close)
  const sent = { ...message({ idempotencyKey: 'schlüssel' }), payload: { path: 'p' } }
  await target(sent, { signal: new AbortController().signal })
  const [{ req, body }] = received as [Received]
  assert.equal(
    `${req.method} ${req.url} ${body} ${req.headers['content-type']}`,
    'PUT /p plain text/plain',
  )
  assert.equal(req.headers['idempotency-key'], 'schl%C3%BCssel')
  assert.equal(req.headers['x-payload'], 'p')
  // Half of a character has no UTF-8, and is no reason to fail.
  await target({ ...sent, idempotencyKey: 'a\ud800' }, { signal: new AbortController().signal })
  assert.equal(received[1]?.req.headers['idempotency-key'], 'a%EF%BF%BD')
  // Nor has a message of a foreign sender only what HTTP allows.
  const foreign = { ...sent, id: 'ä', headers: { tracestate: 'a=ö' } }
  await target(foreign, { signal: new AbortController().signal })
  const { headers } = (received[2] as Received).req
  assert.deepEqual([headers['millrace-message-id'], headers.tracestate], ['%C3%A4', 'a%3D%C3%B6'])
})

test('statuses have the classes that were decided', async (t) => {
  const soon = new Date(Date.now() + 3_600_000).toUTCString()
  const table: readonly (readonly [number, Record<string, string>, RegExp])[] = [
    [200, {}, /^ok$/],
    [204, {}, /^ok$/],
    [299, {}, /^ok$/],
    [429, {}, /^throttled HTTP_429$/],
    [429, { 'retry-after': '7' }, /^throttled HTTP_429 7000$/],
    [
      429,
      { 'retry-after': soon },
      /^throttled HTTP_429 3(599|600)\d{3}$|^throttled HTTP_429 359\d{4}$/,
    ],
    [429, { 'retry-after': 'soon' }, /^throttled HTTP_429$/],
    [429, { 'ratelimit-reset': '30' }, /^throttled HTTP_429 30000$/],
    [503, { 'retry-after': '7' }, /^throttled HTTP_503 7000$/],
    [503, {}, /^transient HTTP_503$/],
    [408, {}, /^transient HTTP_408$/],
    [425, {}, /^transient HTTP_425$/],
    [500, {}, /^transient HTTP_500$/],
    [502, {}, /^transient HTTP_502$/],
    [400, {}, /^permanent HTTP_400$/],
    [404, {}, /^permanent HTTP_404$/],
    [410, {}, /^permanent HTTP_410$/],
    [301, { location: '/' }, /^permanent HTTP_301$/],
    [304, {}, /^permanent HTTP_304$/],
    [307, { location: '/' }, /^permanent HTTP_307$/],
  ]
  let at = 0
  const { url, received } = await receiver(t, (res) => {
    const [status, headers] = table[at] as (typeof table)[number]
    res.writeHead(status, headers).end()
  })
  for (const [status, , expected] of table) {
    assert.match(await outcome(t, url), expected, String(status))
    at++
  }
  assert.equal(received.length, table.length)
})

test('a failure names the target without its query, and the answer without its secrets', async (t) => {
  const { url } = await receiver(t, (res) =>
    res.writeHead(400).end('{"token":"s3cr3t","why":"no\u0000pe"}'),
  )
  await assert.rejects(run(t, `${url}/in?key=s3cr3t`), (error: Error) => {
    assert.equal(
      error.message,
      `POST ${url}/in answered 400: {"token":[redacted],"why":"no\u2400pe"}`,
    )
    assert.ok(error.cause instanceof HttpStatusError && error.cause.status === 400)
    return hasCode(error, 'MILLRACE_PERMANENT')
  })
})

test('a large answer is not read to its end, and its beginning is kept', async (t) => {
  let written = 0
  const { url } = await receiver(t, (res) => {
    res.writeHead(500)
    const more = (): void => {
      while (!res.destroyed && written < 100_000_000) {
        written += 65_536
        if (!res.write('x'.repeat(65_536))) return void res.once('drain', more)
      }
      res.end()
    }
    more()
  })
  await assert.rejects(
    run(t, url),
    (error: Error) => error.message.length < 1_200 && /answered 500: x{900}/.test(error.message),
  )
  assert.ok(written < 50_000_000, String(written))
})

test('left to itself a run takes 15 s at most', async (t) => {
  const clock = virtualClock()
  const came = Promise.withResolvers<void>()
  const { url } = await receiver(t, () => came.resolve())
  const running = outcome(t, url, { clock })
  await came.promise
  assert.equal(clock.nextDueAt(), clock.now() + 15_000)
  await clock.advance(15_000)
  assert.equal(await running, 'transient TimeoutError')
})

test('a slow receiver ends at the timeout, and the connection is given up', async (t) => {
  const gone = Promise.withResolvers<void>()
  const { url, server } = await receiver(t, () => undefined)
  // Not that of the response: on a slow machine the time is over before the receiver has read the request.
  server.on('connection', (socket) => socket.once('close', () => gone.resolve()))
  assert.equal(await outcome(t, url, { timeoutMs: 50 }), 'transient TimeoutError')
  await gone.promise
})

test('a receiver that took the message and never ends its answer has taken the message', async (t) => {
  const { url } = await receiver(t, (res) => void res.writeHead(200).write('on and on'))
  assert.equal(await outcome(t, url, { timeoutMs: 500 }), 'ok')
})

test('a wait that was asked for counts, though the answer never ends', async (t) => {
  const { url } = await receiver(t, (res) => {
    res.writeHead(429, { 'retry-after': '7' }).write('later')
  })
  await assert.rejects(
    run(t, url, { timeoutMs: 200 }),
    (error: unknown) => error instanceof ThrottledError && error.retryAfterMs === 7_000,
  )
})

test('a receiver that changes the protocol has answered, and failed', async (t) => {
  const { url, server } = await receiver(t, () => undefined)
  server.on('upgrade', (_req, socket) => socket.destroy())
  server.removeAllListeners('request')
  const given: Promise<unknown>[] = []
  server.on('request', (req: IncomingMessage) => {
    given.push(once(req.socket, 'close', { signal: AbortSignal.timeout(5_000) }))
    req.socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    )
  })
  await assert.rejects(run(t, url), (error: unknown) => hasCode(error, 'MILLRACE_TRANSIENT'))
  // The connection is given up: nobody would ever read from it.
  assert.equal(given.length, 1)
  await Promise.all(given)
})

test('a run leaves no timer and no listener, however it ends', async (t) => {
  const { url } = await receiver(t, (res, req) => {
    res.statusCode = req.url === '/500' ? 500 : 200
    res.end()
  })
  const clock = virtualClock()
  const { signal } = new AbortController()
  for (const [path, expected] of [
    ['/ok', 'ok'],
    ['/500', 'transient HTTP_500'],
  ] as const) {
    assert.equal(await outcome(t, `${url}${path}`, { clock, signal }), expected)
    assert.deepEqual([clock.nextDueAt(), getEventListeners(signal, 'abort')], [undefined, []])
  }
})

test("the run's signal ends the request, with its own reason", async (t) => {
  const abort = new AbortController()
  const reason = new Error('the lease is lost')
  const { url, received } = await receiver(t, () => abort.abort(reason))
  await assert.rejects(run(t, url, { signal: abort.signal }), (error) => error === reason)
  await assert.rejects(run(t, url, { signal: abort.signal }), (error) => error === reason)
  // One that ends while the address is looked up sends nothing either.
  const late = new AbortController()
  const ending = (): string => {
    late.abort(reason)
    return url
  }
  const target = httpTarget(ending, { allowPrivateAddresses: true })
  t.after(target.close)
  await assert.rejects(target(message(), { signal: late.signal }), (error) => error === reason)
  assert.equal(received.length, 1)
})

test('network failures are transient and say where', async (t) => {
  const { url, server } = await receiver(t, (res) => res.destroy())
  assert.equal(await outcome(t, url), 'transient ECONNRESET')
  server.close()
  server.closeAllConnections()
  await assert.rejects(
    run(t, `${url}/x`),
    /^Error: POST http:\/\/127\.0\.0\.1:\d+\/x failed: .*ECONNREFUSED/,
  )
  assert.equal(await outcome(t, url), 'transient ECONNREFUSED')
})

test('connections are used again', async (t) => {
  const sockets = new Set<unknown>()
  const { url } = await receiver(t, (res, req) => {
    sockets.add(req.socket)
    res.end('taken')
  })
  const target = httpTarget(url, { allowPrivateAddresses: true })
  t.after(target.close)
  for (let i = 0; i < 5; i++) await target(message(), { signal: new AbortController().signal })
  assert.equal(sockets.size, 1)
})

test('connections side by side are bounded: 100, or as many as was said', async (t) => {
  for (const [options, most] of [
    [{}, 100],
    [{ maxSockets: 2 }, 2],
  ] as const) {
    const sockets = new Set<unknown>()
    const { url } = await receiver(t, (res, req) => {
      sockets.add(req.socket)
      res.end()
    })
    const target = httpTarget(url, { allowPrivateAddresses: true, ...options })
    t.after(target.close)
    const { signal } = new AbortController()
    await Promise.all(Array.from({ length: 101 }, () => target(message(), { signal })))
    assert.equal(sockets.size, most)
  }
})

test('private addresses are refused before anything is sent, however they are written', async (t) => {
  const { port, received } = await receiver(t, (res) => res.end())
  const hosts = [
    '127.0.0.1',
    'localhost',
    '127.1',
    '2130706433',
    '0x7f000001',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '0.0.0.0',
    '[::]',
  ]
  for (const host of hosts) {
    const found = await outcome(t, `http://${host}:${port}/`, { allowPrivateAddresses: false })
    assert.equal(found, 'permanent MILLRACE_ADDRESS_REFUSED', host)
  }
  assert.equal(
    await outcome(t, `http://127.0.0.1:${port}/`, { allowPrivateAddresses: ['10.0.0.0/8'] }),
    'permanent MILLRACE_ADDRESS_REFUSED',
  )
  assert.equal(received.length, 0)
  assert.equal(
    await outcome(t, `http://127.0.0.1:${port}/`, { allowPrivateAddresses: ['127.0.0.1'] }),
    'ok',
  )
})

/** Answers one address after the other, as a hostile name server does. */
function rebinding(...answers: readonly (readonly string[])[]): LookupFunction {
  let asked = 0
  return (_host, options, callback) => {
    const addresses = (answers[asked++] ?? []).map((address) => ({ address, family: 4 }))
    if (options.all) callback(null, addresses)
    else callback(null, addresses[0]?.address ?? '', 4)
  }
}

test('a name is judged by the address that is connected to, each time', async (t) => {
  const { port, received } = await receiver(t, (res) => res.end())
  const url = `http://hook.test:${port}/`
  const refused = 'permanent MILLRACE_ADDRESS_REFUSED'
  // The second lookup would reach us; 192.0.2.1 (documentation) stands for what is allowed here.
  const target = { allowPrivateAddresses: ['192.0.2.1'], timeoutMs: 50 }
  const lookup = rebinding(['192.0.2.1'], ['127.0.0.1'], ['192.0.2.1', '127.0.0.1'], [])
  const first = await outcome(t, url, { ...target, lookup })
  assert.match(first, /^transient /)
  for (let i = 0; i < 3; i++) assert.equal(await outcome(t, url, { ...target, lookup }), refused)
  await assert.rejects(run(t, url, { ...target, lookup: rebinding(['127.0.0.1']) }), (error) =>
    hasCode(error, 'MILLRACE_ADDRESS_REFUSED'),
  )
  assert.equal(received.length, 0)
  assert.equal(await outcome(t, url, { lookup: rebinding(['127.0.0.1']) }), 'ok')
})

test('only http and https without credentials are requested', async (t) => {
  const urls = [
    ...['ftp://1.1.1.1/', 'file:///etc/passwd', 'not a url', 'http://user:s3cr3t@[/'],
    ...['http://user:s3cr3t@1.1.1.1/', 'http://:s3cr3t@1.1.1.1/', 'http://s3cr3t@1.1.1.1/'],
  ]
  const { signal } = new AbortController()
  for (const url of urls) {
    const target = httpTarget(() => url)
    t.after(target.close)
    // From a message it is a permanent failure, fixed in the program a wrong option.
    await assert.rejects(target(message(), { signal }), (error: Error) => {
      return hasCode(error, 'MILLRACE_PERMANENT') && !error.message.includes('s3cr3t')
    })
    assert.throws(
      () => httpTarget(url),
      (error: Error) =>
        hasCode(error, 'MILLRACE_INVALID_OPTIONS') && !error.message.includes('s3cr3t'),
    )
  }
})

test('redirects are followed only when asked for, with the same method, each address checked', async (t) => {
  const other = await receiver(t, (res) => res.end())
  const { url, received } = await receiver(t, (res, req) => {
    const to: Record<string, string> = {
      '/307': `${other.url}/final`,
      '/308': '/307',
      '/302': `${other.url}/final`,
      '/loop': '/loop',
      '/inside': `http://localhost:${other.port}/`,
      '/literal': `http://127.0.0.2:${other.port}/`,
      '/credentials': `http://user:s3cr3t@127.0.0.1:${other.port}/`,
      '/ftp': `ftp://127.0.0.1:${other.port}/`,
      '/unreadable': 'http://[',
    }
    const location = to[req.url ?? '']
    if (location) res.writeHead(Number(/\d+/.exec(req.url ?? '')?.[0] ?? 307), { location })
    res.end()
  })
  const follow = { redirects: 'follow', headers: { authorization: 'Bearer x' } } as const
  assert.equal(await outcome(t, `${url}/308`, follow), 'ok')
  const [{ req, body }] = other.received as [Received]
  assert.equal(
    `${req.method} ${req.url} ${body} ${req.headers.authorization}`,
    'POST /final {"a":1} undefined',
  )
  assert.equal(received.at(-1)?.req.headers.authorization, 'Bearer x')
  assert.equal(await outcome(t, `${url}/302`, follow), 'permanent HTTP_302')
  assert.equal(await outcome(t, `${url}/loop`, follow), 'permanent HTTP_307')
  const inside = {
    ...follow,
    allowPrivateAddresses: ['127.0.0.1'],
    lookup: rebinding(['127.0.0.2']),
  }
  assert.equal(await outcome(t, `${url}/inside`, inside), 'permanent MILLRACE_ADDRESS_REFUSED')
  assert.equal(await outcome(t, `${url}/literal`, inside), 'permanent MILLRACE_ADDRESS_REFUSED')
  const wrong = ['credentials', 'ftp', 'unreadable'].map((to) => outcome(t, `${url}/${to}`, follow))
  assert.deepEqual(await Promise.all(wrong), [
    'permanent MILLRACE_PERMANENT',
    'permanent MILLRACE_PERMANENT',
    'permanent HTTP_307',
  ])
  assert.equal(other.received.length, 1)
})

test('three redirects in a row are followed, and no fourth', async (t) => {
  const { url, received } = await receiver(t, (res, req) => {
    const left = Number(req.url?.slice(1))
    if (left > 0) res.writeHead(307, { location: `/${left - 1}` })
    res.end()
  })
  assert.equal(await outcome(t, `${url}/3`, { redirects: 'follow' }), 'ok')
  assert.equal(await outcome(t, `${url}/4`, { redirects: 'follow' }), 'permanent HTTP_307')
  assert.deepEqual(
    received.map(({ req }) => req.url),
    ['/3', '/2', '/1', '/0', '/4', '/3', '/2', '/1'],
  )
})

test('what was sent over https is not redirected to http', async (t) => {
  const certificates = await makeCertificates()
  t.after(certificates.remove)
  const trusted = getCACertificates('default')
  setDefaultCACertificates([...trusted, certificates.ca.toString()])
  t.after(() => setDefaultCACertificates(trusted))
  const plain = await receiver(t, (res) => res.end())
  const locations: Record<string, string> = { '/down': `${plain.url}/`, '/over': '/end' }
  const secure = createSecureServer(certificates.server, (req, res) => {
    const location = locations[req.url ?? '']
    if (location) res.writeHead(307, { location })
    res.end()
  })
  await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    secure.closeAllConnections()
    secure.close()
  })
  const { port } = secure.address() as AddressInfo
  const follow = { redirects: 'follow' } as const
  assert.equal(await outcome(t, `https://127.0.0.1:${port}/over`, follow), 'ok')
  assert.equal(await outcome(t, `https://127.0.0.1:${port}/down`, follow), 'permanent HTTP_307')
  assert.equal(plain.received.length, 0)
})

test('a signed request can be verified by its receiver', async (t) => {
  const { url, received } = await receiver(t, (res) => res.end())
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  await run(t, url, {
    secret,
    clock: { now: () => 1_614_265_330_000, after: () => () => {} },
    // What is signed stays as it was signed.
    headers: { 'Webhook-Id': 'other', 'webhook-timestamp': '1' },
  })
  const { headers } = (received[0] as Received).req
  assert.equal(headers['webhook-id'], 'm-1')
  assert.equal(headers['webhook-timestamp'], '1614265330')
  assert.match(String(headers['webhook-signature']), /^v1,[A-Za-z0-9+/]{43}=$/)
  // Wherever it is redirected to: without, that one could not tell who sent it.
  const first = await receiver(t, (res) => res.writeHead(307, { location: url }).end())
  await run(t, first.url, { secret, redirects: 'follow' })
  assert.match(String(received[1]?.req.headers['webhook-signature']), /^v1,/)
})

test('options that cannot work are refused at once', () => {
  const bad: readonly HttpTargetOptions<unknown>[] = [
    { timeoutMs: 0 },
    { timeoutMs: Number.NaN },
    { maxSockets: 0 },
    { secret: 'short' },
    { allowPrivateAddresses: ['10.0.0.0/99'] },
    { allowPrivateAddresses: '' as never },
  ]
  for (const options of bad)
    assert.throws(
      () => httpTarget('http://a.test', options),
      (e) => hasCode(e, 'MILLRACE_INVALID_OPTIONS'),
    )
})

test('every wrong option of a target is named at once, with the nearest known one, and readable', () => {
  const given = {
    timeout: 1,
    secrets: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    secret: ['short', 5],
    redirects: 'all',
    method: 'P T',
    headers: { 'a b': 'x', 'x-number': 5, 'x-line': 'a\nb', fine: 'yes' },
    body: 'text',
    allowPrivateAddresses: [5],
    maxSockets: 1.5,
  }
  assert.throws(
    () => httpTarget('nope', given as object),
    (error: OptionsError) => {
      assert.deepEqual(error.problems, [
        'url: expected an absolute URL, got "nope"',
        'unknown option "timeout", did you mean "timeoutMs"?',
        'unknown option "secrets", did you mean "secret"?',
        'method: expected POST, PUT, PATCH, DELETE, got "P T"',
        'redirects: expected refuse, follow, got "all"',
        'headers has "a b", which HTTP does not allow as a name',
        'headers has "x-number", whose value must be a text, got 5',
        'headers has "x-line", whose value HTTP does not allow',
        'body: expected a function, got "text"',
        'maxSockets: expected an integer from 1 to 10000, got 1.5',
        'secret must be whsec_ and the base64 of 24 to 64 bytes, got 3 bytes',
        'secret must be whsec_ and the base64 of 24 to 64 bytes, got 5',
        'allowPrivateAddresses: expected true, false, or addresses and subnets such as "10.0.0.0/8", got [5]',
      ])
      assert.equal(messageOfError(error), error.message)
      return true
    },
  )
  const wrong: readonly (readonly [unknown, unknown, RegExp])[] = [
    [undefined, {}, /url: expected an address or a function of the message, got undefined/],
    ['http://a.test', null, /expected an object of options, got null/],
    [
      'http://a.test',
      { secret: undefined },
      /secret is undefined; is the environment variable set/,
    ],
    ['http://a.test', { secret: [] }, /secret must not be an empty list/],
    ['http://a.test', { headers: 'x: y' }, /headers: expected an object or a function/],
  ]
  for (const [url, options, expected] of wrong)
    assert.throws(() => httpTarget(url as never, options as never), expected)
})
