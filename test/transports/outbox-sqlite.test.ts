import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type Outbox, type Publish, sqliteOutbox } from 'millrace/outbox'
import { virtualClock } from 'millrace/testing'
import { refused, stored } from '../../src/transport/outcomes.ts'
import { envelope, outboxContext } from './outbox-subjects.ts'
import { databaseFile } from './sqlite-harness.ts'

const taken: Publish = async (rows) => rows.map((row) => stored(row.envelope.id))

/** Relays of several processes on one file, on one clock that the test moves, and one row. */
async function scene(t: TestContext) {
  const clock = virtualClock()
  const { file, dispose } = await databaseFile()
  t.after(dispose)
  const connect = async (): Promise<Outbox> => {
    const outbox = await sqliteOutbox({ file }).connect(outboxContext(clock))
    t.after(() => outbox.close())
    return outbox
  }
  const [first, second] = [await connect(), await connect()]
  const db = new DatabaseSync(file)
  db.exec('BEGIN IMMEDIATE')
  const one = envelope()
  await (await first.transaction(db))?.add('orders', [one])
  db.exec('COMMIT')
  db.close()
  /** Dies while it publishes, after so long: it says nothing any more, and gives nothing back. */
  const dies = async (outbox: Outbox, afterMs: number): Promise<void> => {
    const publishing = Promise.withResolvers<void>()
    const pass = outbox.relay(10, () => {
      publishing.resolve()
      return new Promise(() => undefined)
    })
    pass.catch(() => undefined)
    await publishing.promise
    await clock.advance(afterMs)
    await outbox.close()
  }
  return { clock, file, first, second, connect, dies }
}

test('sqlite: a relay that publishes for long keeps its rows for as long as it does', async (t) => {
  const { clock, first, second } = await scene(t)
  const publishing = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  const pass = first.relay(10, async (rows) => {
    publishing.resolve()
    await answered.promise
    return await taken(rows)
  })
  await publishing.promise
  for (let seconds = 0; seconds < 60; seconds += 4) {
    await clock.advance(4_000)
    assert.equal((await second.relay(10, taken)).taken, 0)
  }
  answered.resolve()
  assert.equal((await pass).published, 1)
  assert.equal((await second.lag()).rows, 0)
})

test('sqlite: rows of a relay that died are free 10 s after its last sign of life', async (t) => {
  const { clock, first, second, dies } = await scene(t)
  await dies(first, 4_000)
  // It renewed them at 3.3 s.
  await clock.advance(9_300)
  assert.equal((await second.relay(10, taken)).taken, 0)
  await clock.advance(100)
  assert.equal((await second.relay(10, taken)).published, 1)
})

test('sqlite: a row that kills its relay comes after its gap, not after 10 s', async (t) => {
  const { clock, first, second, dies } = await scene(t)
  for (let tries = 1; tries <= 6; tries++) {
    const pass = await second.relay(10, async (rows) => rows.map(() => refused('conflict')))
    assert.deepEqual(
      pass.failed.map((failure) => failure.tries),
      [tries],
    )
    await clock.advance(20_000)
  }
  await dies(first, 4_000)
  // The seventh gap is 32 s, whether it was renewed or not.
  await clock.advance(27_900)
  assert.equal((await second.relay(10, taken)).taken, 0)
  await clock.advance(200)
  assert.equal((await second.relay(10, taken)).published, 1)
})

test('sqlite: its age is that of the oldest row', async (t) => {
  const { clock, file, first } = await scene(t)
  await clock.advance(60_000)
  const db = new DatabaseSync(file)
  db.exec('BEGIN IMMEDIATE')
  await (await first.transaction(db))?.add('orders', [envelope()])
  db.exec('COMMIT')
  db.close()
  assert.deepEqual(await first.lag(), { rows: 2, ageMs: 60_000 })
})

test('sqlite: what a relay that lost its rows says of them frees none that another one is publishing', async (t) => {
  const { clock, file, first } = await scene(t)
  const later = virtualClock({ startMs: clock.now() + 20_000 })
  const second = await sqliteOutbox({ file }).connect(outboxContext(later))
  t.after(() => second.close())
  const slow = Promise.withResolvers<void>()
  // Renewed at its own time only, which has ended for the other one.
  const lost = first.relay(10, async (rows) => {
    const other = Promise.withResolvers<void>()
    const pass = second.relay(10, async (again) => {
      other.resolve()
      await slow.promise
      return await taken(again)
    })
    // Also where it fails: the file would wait for what is open.
    t.after(async () => {
      slow.resolve()
      await pass.catch(() => undefined)
    })
    await other.promise
    return rows.map(() => refused('conflict'))
  })
  assert.equal((await lost).failed.length, 1)
  assert.equal((await first.relay(10, taken)).taken, 0)
  assert.equal((await second.relay(10, taken)).taken, 0)
})
