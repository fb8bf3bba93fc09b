import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { intake } from 'millrace/http'
import { memory } from 'millrace/memory'
import * as z from 'zod'

const events = defineQueue({ name: 'events', owner: 'team-test', payload: z.unknown() })

/** The intake in a server of one's own, where `before` gets each request first. */
async function mounted(t: TestContext, before: (req: IncomingMessage) => Promise<unknown>) {
  const app = await createMillrace({ transport: memory(), queues: [events], logger: silentLogger })
  t.after(() => app.close())
  const logged: string[] = []
  const logger = { ...silentLogger, error: (message: string) => void logged.push(message) }
  const door = intake(app, { port: 0, logger })
  const server = createServer((req, res) => {
    void before(req).then(() => door.handler(req, res))
  })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const depth = async (): Promise<number | undefined> => (await app.admin.stats(events)).depth
  return { url: `http://127.0.0.1:${port}/queues/events/messages`, logged, depth }
}

function opened(url: string): { write(text: string): void; answered: Promise<string> } {
  const headers = { 'content-type': 'application/json' }
  const req = request(url, { method: 'POST', headers, signal: AbortSignal.timeout(10_000) })
  const answered = once(req, 'response').then(async ([res]: IncomingMessage[]) => {
    assert.ok(res)
    const parts = await res.setEncoding('utf8').toArray()
    return `${res.statusCode} ${parts.join('')}`
  })
  return { write: (text) => (text === '' ? req.end() : req.write(text)), answered }
}

const WHAT =
  /^500 .*"BODY_ALREADY_READ".*before the intake got the request.*mount the intake before/

test('Behind a body parser the intake says where it belongs, to the sender and in the log.', async (t) => {
  const { url, logged, depth } = await mounted(t, (req) => req.toArray())
  for (const body of ['{"n":1}', '[]']) {
    const { write, answered } = opened(url)
    write(body)
    write('')
    assert.match(await answered, WHAT)
  }
  assert.equal(logged.length, 2)
  assert.match(logged[0] ?? '', /^intake: the body was read before .* mount the intake before/)
  assert.equal(await depth(), 0)
})

test('The rest of a body that was read in part is not taken for the body.', async (t) => {
  const begun = Promise.withResolvers<void>()
  const { url, depth } = await mounted(t, async (req) => {
    await once(req, 'data')
    req.pause()
    begun.resolve()
  })
  const { write, answered } = opened(url)
  write('12')
  await begun.promise
  write('34')
  write('')
  assert.match(await answered, WHAT)
  assert.equal(await depth(), 0)
})

test('A body that was given an encoding is refused: bytes that are no text would change unseen.', async (t) => {
  const { url, logged, depth } = await mounted(t, async (req) => void req.setEncoding('utf8'))
  const { write, answered } = opened(url)
  write('"a"')
  write('')
  assert.match(await answered, WHAT)
  assert.match(logged[0] ?? '', /^intake: the body was given an encoding before /)
  assert.equal(await depth(), 0)
})

test('A body that waits while something else happens first is taken, whole.', async (t) => {
  const { url, depth } = await mounted(t, async (req) => {
    while (!req.complete) await setImmediate()
  })
  const { write, answered } = opened(url)
  write('"whole"')
  write('')
  assert.match(await answered, /^202 /)
  assert.equal(await depth(), 1)
})
