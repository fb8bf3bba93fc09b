import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { sqlite } from 'millrace/sqlite'
import { sqliteStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { matching } from '../../src/deadletters/redrive.ts'
import type { DeadLetter } from '../../src/model/dead-letter.ts'
import { freshHistory } from '../../src/model/history.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Shelf, Transport } from '../../src/transport/transport.ts'
import { databaseFile } from './sqlite-harness.ts'

const { signal } = new AbortController()
const QUEUE = 'large'
const NOTE = { actor: 'someone', reason: 'test' }
const BODY_BYTES = 1_000_000
/** Of this size as many as 4 MiB hold. */
const STEP = 4
const MESSAGES = 11

interface Stored {
  readonly transport: Transport
  readonly shelf: Shelf
  readonly ids: readonly string[]
  /** Counted on a connection of its own. */
  readonly rows: (table: 'message' | 'dead_letter') => number
  /** What the queue counts itself: it decides about its capacity by it. */
  readonly total: () => number
  readonly write: (sql: string) => void
}

async function stored(t: TestContext): Promise<Stored> {
  const { file, dispose } = await databaseFile()
  const clock = virtualClock()
  const transport = await sqlite({ file }).connect({
    ...{ signal, clock, random: Math.random, logger: silentLogger, migrate: 'auto' },
  })
  const { shelf } = transport
  assert.ok(shelf)
  await transport.topology.ensure([{ name: QUEUE, owner: 'team', maxDepth: undefined }], signal)
  const ids = Array.from({ length: MESSAGES }, (_, i) => `m${i}`)
  const body = new Uint8Array(BODY_BYTES)
  for (const id of ids) {
    await transport.send(QUEUE, [{ id, body, headers: {}, priority: 0 }], { signal })
  }
  const other = new DatabaseSync(file)
  t.after(async () => {
    other.close()
    await transport.close()
    await dispose()
  })
  const rows: Stored['rows'] = (table) =>
    Number(other.prepare(`SELECT count(*) AS n FROM millrace_${table}`).get()?.n)
  const total = (): number => Number(other.prepare('SELECT total FROM millrace_queue').get()?.total)
  return { transport, shelf, ids, rows, total, write: (sql) => other.exec(sql) }
}

async function buried(t: TestContext): Promise<Stored> {
  const all = await stored(t)
  const from = await all.transport.subscribe(QUEUE, {
    ...{ group: 'g', leaseMs: 60_000, maxInFlight: MESSAGES },
  })
  const batch = await from.receive({ max: MESSAGES, waitMs: 0, signal })
  await from.settle(
    batch.map((delivery) => ({
      ...{ as: 'dead', delivery, reason: 'broken', errorClass: 'permanent' },
    })),
  )
  await from.close()
  assert.equal(all.rows('dead_letter'), MESSAGES)
  return all
}

/** What is left at each turn of the event loop while it runs: the first and the last included. */
async function seenWhile(left: () => number, run: () => Promise<unknown>): Promise<void> {
  const seen = [left()]
  let isOver = false
  const running = run().finally(() => {
    isOver = true
  })
  while (!isOver) {
    await new Promise(setImmediate)
    seen.push(left())
  }
  await running
  assert.equal(seen.at(-1), 0)
  const steps = seen.slice(1).map((n, i) => (seen[i] ?? 0) - n)
  assert.ok(Math.max(...steps) <= STEP, `between two turns of the event loop: ${steps.join(' ')}`)
}

test('a redrive of large letters lets the event loop turn after 4 MiB, and answers all', async (t) => {
  const { shelf, ids, rows } = await buried(t)
  let moved: readonly string[] = []
  await seenWhile(
    () => rows('dead_letter'),
    async () => {
      moved = await shelf.redrive(QUEUE, [...ids, 'unknown'], NOTE)
    },
  )
  assert.deepEqual(moved, ids)
  assert.equal(rows('message'), MESSAGES)
  assert.equal((await shelf.audit(QUEUE, 100)).length, MESSAGES)
})

test('so does a discard', async (t) => {
  const { shelf, ids, rows } = await buried(t)
  let gone: readonly string[] = []
  await seenWhile(
    () => rows('dead_letter'),
    async () => {
      gone = await shelf.discard(QUEUE, ids, NOTE)
    },
  )
  assert.deepEqual(gone, ids)
})

test('so does a purge, which removes all that was there', async (t) => {
  const { transport, rows } = await stored(t)
  await seenWhile(
    () => rows('message'),
    async () => assert.equal(await transport.browse?.purge?.(QUEUE), MESSAGES),
  )
  assert.equal((await transport.browse?.gauge(QUEUE))?.depth, 0)
})

test('a purge leaves what is in hand, and its place in the capacity', async (t) => {
  const { transport, rows, total } = await stored(t)
  const from = await transport.subscribe(QUEUE, { group: 'g', leaseMs: 60_000, maxInFlight: 1 })
  assert.equal((await from.receive({ max: 1, waitMs: 0, signal })).length, 1)
  assert.equal(await transport.browse?.purge?.(QUEUE), MESSAGES - 1)
  assert.deepEqual([rows('message'), total()], [1, 1])
  await from.close()
})

test('what is sent behind the first of its key while that is purged is next of its key', async (t) => {
  const { transport, rows } = await stored(t)
  const body = new Uint8Array(BODY_BYTES)
  const head = { id: 'head', orderingKey: 'k', body, headers: {}, priority: 0 }
  await transport.send(QUEUE, [head], { signal })
  let sent = false
  let isOver = false
  const purged = transport.browse?.purge?.(QUEUE).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await new Promise(setImmediate)
    if (sent || rows('message') > MESSAGES - STEP + 1) continue
    sent = true
    const [answer] = await transport.send(QUEUE, [{ ...head, id: 'behind' }], { signal })
    assert.ok(answer?.ok)
    assert.ok(rows('message') > 1, 'the head is there still')
  }
  await purged
  const from = await transport.subscribe(QUEUE, { group: 'g', leaseMs: 60_000, maxInFlight: 1 })
  const [next] = await from.receive({ max: 1, waitMs: 0, signal })
  assert.equal(next?.envelope.id, 'behind')
  await from.close()
})

test('a shed that waits for a lock ends with its signal', async (t) => {
  const { transport, write } = await stored(t)
  write('BEGIN IMMEDIATE')
  const stop = new AbortController()
  const options = { max: 1, upTo: 9, signal: stop.signal }
  const waiting = assert.rejects(Promise.resolve(transport.shed?.(QUEUE, options)), /enough/)
  await new Promise(setImmediate)
  stop.abort(new Error('enough'))
  await waiting
  write('ROLLBACK')
})

test('a purge removes all, also where one transaction takes only the first of the small ones', async (t) => {
  const { transport, rows } = await stored(t)
  const small = { body: new Uint8Array(1), headers: {}, priority: 0 }
  for (let part = 0; part < 13; part++) {
    const batch = Array.from({ length: 400 }, (_, i) => ({ ...small, id: `small-${part}-${i}` }))
    await transport.send(QUEUE, batch, { signal })
  }
  assert.equal(await transport.browse?.purge?.(QUEUE), MESSAGES + 13 * 400)
  assert.equal(rows('message'), 0)
})

test('so does a shed, to the dead letters too, and it removes as many as it was asked for', async (t) => {
  const { transport, rows } = await stored(t)
  const options = { max: MESSAGES - 1, upTo: 9, reason: 'shed', signal }
  await seenWhile(
    () => rows('message') - 1,
    async () => assert.equal(await transport.shed?.(QUEUE, options), MESSAGES - 1),
  )
  assert.equal(rows('dead_letter'), MESSAGES - 1)
})

test('pages of many dead letters, and a look at each, let the event loop turn', async (t) => {
  const { shelf, rows, write } = await stored(t)
  write(`WITH RECURSIVE each (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each WHERE n < 2500)
    INSERT INTO millrace_dead_letter (queue_id, id, dead_at, error_class, reason, owner, priority, sent_at, counted,
      crashes, redrives, headers, records, body)
    SELECT queue_id, n, n / 150, 'permanent', 'no', 'team', 0, 0, 1, 0, 0, '{}', '[]', x'00'
    FROM each, (SELECT queue_id FROM millrace_message LIMIT 1)`)
  assert.equal(rows('dead_letter'), 2_500)
  // Many died in one millisecond, so pages end between two of them.
  for (const filter of [{}, { errorClass: 'permanent' }] as const) {
    const seen = new Set<string>()
    const pages = await turnsWhile(async () => {
      for await (const { id } of matching(shelf, QUEUE, filter)) seen.add(id)
    })
    assert.equal(seen.size, 2_500)
    assert.ok(pages >= 5, `5 pages, ${pages} turns`)
  }
  const looks = await turnsWhile(async () => {
    for (let n = 1; n <= 50; n++) assert.ok(await shelf.get(QUEUE, String(n)))
  })
  assert.ok(looks >= 50, `50 letters, ${looks} turns`)
})

/** How often the event loop turns. */
async function turnsWhile(run: () => Promise<void>): Promise<number> {
  let turns = 0
  let isOver = false
  const turn = (): void => {
    turns += 1
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await run()
  isOver = true
  return turns
}

test('the redrive and the discard of a store let the event loop turn after 4 MiB, too', async (t) => {
  const { file, dispose } = await databaseFile()
  const store = await sqliteStore({ file }).connect({
    ...{ signal, clock: virtualClock(), random: Math.random, logger: silentLogger },
    migrate: 'auto',
  })
  const other = new DatabaseSync(file)
  t.after(async () => {
    other.close()
    await store.close()
    await dispose()
  })
  const rows = (): number =>
    Number(other.prepare('SELECT count(*) AS n FROM millrace_store_dead_letter').get()?.n)
  const ids = Array.from({ length: MESSAGES }, (_, i) => `m${i}`)
  const bury = async (): Promise<void> => {
    for (const id of ids) await store.shelf.put([letter(id)])
  }
  await bury()
  const turns = await turnsWhile(async () => {
    for (const id of ids) assert.ok(await store.shelf.get(QUEUE, id))
    for (const _ of ids) await store.shelf.list(QUEUE, { limit: 1 })
  })
  assert.ok(turns >= 2 * MESSAGES, `${turns} turns`)
  await seenWhile(rows, async () => {
    assert.deepEqual(await store.shelf.discard(QUEUE, ids, NOTE), ids)
  })
  await bury()
  const { items } = await store.shelf.list(QUEUE, { limit: MESSAGES })
  const letters = items.map(({ envelope, deadAt }) => ({ id: envelope.id, deadAt }))
  await seenWhile(rows, async () => {
    assert.equal((await store.shelf.redriven(QUEUE, letters, NOTE)).length, MESSAGES)
  })
})

function letter(id: string): Omit<DeadLetter, 'deadAt'> {
  return {
    envelope: { id, body: new Uint8Array(BODY_BYTES), headers: {}, priority: 0 },
    ...{ queue: QUEUE, owner: 'team', errorClass: 'permanent', reason: 'broken' },
    ...{ history: freshHistory, sentAt: 0 },
  }
}
