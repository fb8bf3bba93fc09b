import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sqlite } from 'millrace/sqlite'
import { pause, systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { databaseFile } from '../transports/sqlite-harness.ts'
import { connect } from './sqlite-connect.ts'

const CHILD = fileURLToPath(new URL('./sqlite-child.ts', import.meta.url))
const clock = systemClock()
const { signal } = new AbortController()

/** A test that failed half way leaves nobody behind. */
const running = new Set<ChildProcess>()
afterEach(() => {
  for (const child of running) child.kill('SIGKILL')
})

interface Child {
  readonly process: ChildProcess
  readonly lines: string[]
  readonly errors: string[]
  /** Answers the exit code; null when it was killed. */
  readonly ended: Promise<number | null>
}

function start(act: string, file: string, number = 0): Child {
  const child = spawn(
    process.execPath,
    ['--conditions=millrace-source', CHILD, act, file, String(number)],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  )
  running.add(child)
  child.once('close', () => running.delete(child))
  const lines: string[] = []
  const errors: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { process: child, lines, errors, ended }
}

async function until(what: string, condition: () => boolean, withinMs = 60_000): Promise<void> {
  const endAt = clock.now() + withinMs
  while (!condition()) {
    if (clock.now() > endAt) assert.fail(`gave up after ${withinMs} ms: ${what}`)
    await pause(clock, 10)
  }
}

function intact(file: string): void {
  const handle = new DatabaseSync(file)
  assert.equal(handle.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok')
  const counted = handle.prepare(
    'SELECT (SELECT total FROM millrace_queue) AS total, (SELECT count(*) FROM millrace_message) AS n',
  )
  const { total, n } = counted.get() ?? {}
  assert.equal(total, n)
  handle.close()
}

const words = (child: Child, first: string): readonly string[] =>
  child.lines
    .filter((line) => line.startsWith(`${first} `))
    .map((line) => line.slice(first.length + 1))

test('three processes on one file send and work at once: nothing is lost, doubled or refused', async () => {
  const { file, dispose } = await databaseFile()
  const each = 300
  const children = [1, 2, 3].map(() => start('work', file, each))
  const acked = (): readonly string[] => children.flatMap((child) => words(child, 'acked'))
  await until('all messages are acked', () => {
    assert.deepEqual(
      children.flatMap((child) => child.errors),
      [],
    )
    return acked().length >= 3 * each
  })
  for (const child of children) child.process.stdin?.end()
  assert.deepEqual(await Promise.all(children.map((child) => child.ended)), [0, 0, 0])
  const sent = children.flatMap((child) => words(child, 'sent'))
  assert.equal(sent.length, 3 * each)
  assert.deepEqual([...acked()].sort(), [...sent].sort())
  assert.deepEqual(
    children.flatMap((child) => words(child, 'lost')),
    [],
  )
  assert.ok(
    children.every((child) => words(child, 'acked').length > 0),
    'every process got some',
  )
  intact(file)
  await dispose()
})

test('a write lock held for 3 s by another process blocks neither the event loop nor a lease', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(file, clock)
  const envelope = { id: 'first', body: new Uint8Array(1), headers: {}, priority: 0 }
  await transport.send('q', [envelope], { signal })
  const subscription = await transport.subscribe('q', {
    group: 'g',
    leaseMs: 10_000,
    maxInFlight: 10,
  })
  const [delivery] = await subscription.receive({ max: 1, waitMs: 0, signal })
  assert.ok(delivery)

  const holder = start('hold', file, 3_000)
  await until('the lock is held', () => holder.lines.includes('held'))
  const heldAt = clock.now()
  const loop = monitorEventLoopDelay({ resolution: 10 })
  loop.enable()
  const [sent, renewed, settled, received] = await Promise.all([
    transport.send('q', [{ ...envelope, id: 'second' }], { signal }),
    subscription.renew?.([delivery], 10_000),
    subscription.settle([{ as: 'acked', delivery }]),
    subscription.receive({ max: 1, waitMs: 30_000, signal }),
  ])
  loop.disable()
  assert.ok(clock.now() - heldAt > 2_000, 'the lock was really in the way')
  assert.ok(loop.max / 1e6 < 200, `the event loop stood still for ${loop.max / 1e6} ms`)
  assert.deepEqual(sent, [{ ok: true, id: 'second', duplicate: false }])
  // Renewal and ack raced; whichever came second may find the message settled.
  assert.equal(settled[0]?.ok, true)
  assert.equal(renewed?.length, 1)
  assert.deepEqual(
    received.map((one) => one.envelope.id),
    ['second'],
  )
  assert.equal(await holder.ended, 0)
  await transport.close()
  await dispose()
})

test('a lock that stays is an unavailable backend after busyTimeoutMs, and nothing was stored', async () => {
  const { file, dispose } = await databaseFile()
  await (await connect(file, clock)).close()
  const transport = await sqlite({ file, busyTimeoutMs: 100 }).connect({
    signal,
    clock,
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  })
  const handle = new DatabaseSync(file)
  handle.exec('BEGIN IMMEDIATE')
  const envelope = { id: 'first', body: new Uint8Array(1), headers: {}, priority: 0 }
  const error: unknown = await transport.send('q', [envelope], { signal }).catch((e: unknown) => e)
  assert.match(String(error), /stayed locked for 100 ms/)
  const { code, retryable, outcome } = transport.diagnose(error)
  assert.deepEqual(
    { code, retryable, outcome },
    { code: 'unavailable', retryable: true, outcome: 'notApplied' },
  )
  handle.exec('ROLLBACK')
  handle.close()
  assert.equal(await transport.browse?.get?.('q', 'first'), undefined)
  await transport.close()
  await dispose()
})

test('kill -9 in the middle of sends leaves whole batches and a consistent file', async () => {
  const { file, dispose } = await databaseFile()
  const confirmed = new Set<string>()
  for (let round = 1; round <= 5; round++) {
    const child = start('send', file)
    await until('some batches are confirmed', () => child.lines.length >= 3 * round)
    child.process.kill('SIGKILL')
    assert.equal(await child.ended, null)
    assert.deepEqual(child.errors, [])
    for (const line of child.lines)
      for (const id of line.split(' ')) if (id.length === 36) confirmed.add(id)
    intact(file)
  }
  const handle = new DatabaseSync(file)
  const stored = new Set(
    handle
      .prepare('SELECT id FROM millrace_message')
      .all()
      .map((row) => row.id),
  )
  handle.close()
  assert.equal(stored.size % 7, 0)
  assert.deepEqual(
    [...confirmed].filter((id) => !stored.has(id)),
    [],
  )
  await dispose()
})

test('twenty processes that start at once on an empty file all find one migrated database', async () => {
  const { file, dispose } = await databaseFile()
  const children = Array.from({ length: 20 }, () => start('migrate', file))
  const codes = await Promise.all(children.map((child) => child.ended))
  assert.deepEqual(
    children.flatMap((child) => child.errors),
    [],
  )
  assert.deepEqual(new Set(codes), new Set([0]))
  assert.equal(new Set(children.flatMap((child) => child.lines)).size, 1)
  intact(file)
  await dispose()
})
