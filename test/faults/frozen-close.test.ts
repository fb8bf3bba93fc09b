import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, afterEach, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../src/model/clock.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import {
  type Freezable,
  type FrozenName,
  type FrozenSubject,
  frozenSubjects,
} from './frozen-subjects.ts'

const { signal } = new AbortController()
/** What a transport gives its connections and groups for a farewell, and some room. */
const TRANSPORT_MS = 8_000
/** `timeoutMs` and half a second (docs/guide/workers.md), and room for a busy machine. */
const APP_MS = 500 + 500 + 1_000

for (const name of ['rabbitmq', 'kafka', 'sqs'] as const) {
  const subject = frozenSubjects[name]
  if (backendUrl(subject.backend) === undefined) continue
  describe(`a ${name} that is frozen`, () => {
    let server: Freezable
    before(async () => {
      server = await subject.start()
    })
    afterEach(() => void process.kill(server.pid, 'SIGCONT'))
    after(() => server.stop())

    test('holds no close of a transport for long that has a message in hand and calls under way', () =>
      closeAtWork(subject, server))
    for (const turns of [0, 1, 20]) {
      test(`nor one whose subscription began ${turns} turns ago`, () =>
        closeWhileSubscribing(subject, server, turns))
    }
    test('a subscription that comes about while its transport closes is refused', () =>
      subscribeWhileClosing(subject, server))
    for (const turns of ['at work', '0', '20', '100']) {
      test(`an app that is ${turns === 'at work' ? turns : `${turns} turns into its start`} closes in its time, and its process ends`, (t) =>
        closeApp(t, name, server, turns))
    }
  })
}

let queues = 0
function freshQueue(): string {
  queues += 1
  return `frozen-${process.pid}-${queues}`
}

async function opened({ connector }: FrozenSubject, server: Freezable, queue: string) {
  const context = { signal, clock: systemClock(), random: Math.random, logger: silentLogger }
  const transport = await connector(server.address).connect({ ...context, migrate: 'auto' })
  await transport.topology.ensure([{ name: queue, owner: 'o', maxDepth: undefined }], signal)
  return transport
}

function subscribed(transport: Transport, queue: string): Promise<Subscription> {
  return transport.subscribe(queue, { group: 'g', leaseMs: 30_000, maxInFlight: 10 })
}

function envelope(id: string, bytes = 2): Envelope {
  return { id, body: new Uint8Array(bytes).fill(32), headers: {}, priority: 0 }
}

async function closeAtWork(subject: FrozenSubject, server: Freezable): Promise<void> {
  const queue = freshQueue()
  const transport = await opened(subject, server, queue)
  await transport.send(queue, [envelope('a')], { signal })
  const subscription = await subscribed(transport, queue)
  const [held] = await taken(subscription)
  const waiting = subscription.receive({ max: 1, waitMs: 60_000, signal }).catch(() => [])
  process.kill(server.pid, 'SIGSTOP')
  const sends = Array.from({ length: 20 }, (_, at) =>
    transport.send(queue, [envelope(`large-${at}`, subject.bodyBytes)], { signal }),
  )
  const calls = Promise.allSettled([...sends, subscribed(transport, queue)])
  await closesInTime(transport)
  assert.equal(held?.claim.lost.aborted, true)
  assert.deepEqual(await waiting, [])
  await inTime('calls under way', calls, TRANSPORT_MS)
}

async function closeWhileSubscribing(
  subject: FrozenSubject,
  server: Freezable,
  turns: number,
): Promise<void> {
  const queue = freshQueue()
  const transport = await opened(subject, server, queue)
  const subscribing = Promise.allSettled([subscribed(transport, queue)])
  for (let n = 0; n < turns; n++) await new Promise(setImmediate)
  process.kill(server.pid, 'SIGSTOP')
  await closesInTime(transport)
  await inTime('the subscription that came about', subscribing, TRANSPORT_MS)
}

/** The server answers: it comes about, and nobody else would close it. */
async function subscribeWhileClosing(subject: FrozenSubject, server: Freezable): Promise<void> {
  const queue = freshQueue()
  const transport = await opened(subject, server, queue)
  await transport.send(queue, [envelope('a')], { signal })
  await taken(await subscribed(transport, queue))
  const subscribing = subscribed(transport, queue)
  const refused = assert.rejects(subscribing, { code: 'MILLRACE_CLOSED' })
  await closesInTime(transport)
  await inTime('the refusal', refused, TRANSPORT_MS)
}

async function closesInTime(transport: Transport): Promise<void> {
  await inTime('the close', transport.close(), TRANSPORT_MS)
  await inTime('the second close', transport.close(), TRANSPORT_MS)
}

async function inTime(what: string, work: Promise<unknown>, ms: number): Promise<void> {
  const ended = work.then(() => 'ended')
  assert.equal(await Promise.race([ended, sleep(ms, 'goes on', { ref: false })]), 'ended', what)
}

async function taken(from: Subscription) {
  const all: Awaited<ReturnType<Subscription['receive']>>[number][] = []
  await until('a message', async () => {
    all.push(...(await from.receive({ max: 1, waitMs: 100, signal })))
    return all.length > 0
  })
  return all
}

async function closeApp(
  t: TestContext,
  name: FrozenName,
  server: Freezable,
  turns: string,
): Promise<void> {
  const file = new URL('./frozen-app.ts', import.meta.url).pathname
  const parts = [name, server.address, String(server.pid), freshQueue(), turns]
  const args = ['--conditions=millrace-source', file, ...parts]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  const exited = once(child, 'exit')
  await until('the app to be closed', () => said.includes('closed'), 30_000)
  const closedMs = Number(/closed (\d+)/.exec(said)?.[1])
  await inTime('the end of the process', exited, TRANSPORT_MS)
  assert.ok(said.includes('settled'))
  assert.equal(child.exitCode, 0)
  assert.ok(closedMs < APP_MS, `closed after ${closedMs} ms`)
}
