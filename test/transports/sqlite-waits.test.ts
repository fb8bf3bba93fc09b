import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { sqlite } from 'millrace/sqlite'
import { virtualClock } from 'millrace/testing'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { sqliteIdentity } from '../../src/sql/sqlite-handle.ts'
import { openDatabaseBell } from '../../src/transports/sqlite/bell.ts'
import { databaseFile } from './sqlite-harness.ts'

const clock = systemClock()

async function scene(t: TestContext) {
  const { file, dispose } = await databaseFile()
  const { signal } = new AbortController()
  const transport = await sqlite({ file }).connect({
    ...{ signal, clock, random: Math.random, logger: silentLogger },
    migrate: 'auto',
  })
  await transport.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], signal)
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  t.after(async () => {
    other.close()
    await transport.close()
    await dispose()
  })
  const send = (until: AbortSignal): Promise<unknown> => {
    const envelope = { id: 'm', body: new Uint8Array(1), headers: {}, priority: 0 }
    return transport.send('q', [envelope], { signal: until })
  }
  return { transport, other, send }
}

test('sqlite: a send that waits for a lock ends with its own signal, at once and with nothing stored', async (t) => {
  const { transport, other, send } = await scene(t)
  const calledOff = new AbortController()
  const sending = assert.rejects(send(calledOff.signal), /called off/)
  calledOff.abort(new Error('called off'))
  await sending
  other.exec('COMMIT')
  assert.equal(await transport.browse?.get?.('q', 'm'), undefined)
})

test('sqlite: a send that waits for a lock ends with the close of the transport, which says so', async (t) => {
  const { transport, send } = await scene(t)
  const sending = assert.rejects(send(new AbortController().signal), { code: 'MILLRACE_CLOSED' })
  await transport.close()
  await sending
})

test('sqlite: a start on a handle waits for nobody who writes, and takes no lock in a transaction of the user', async (t) => {
  const { file, dispose } = await databaseFile()
  const connect = (db: DatabaseSync) =>
    sqlite({ db }).connect({
      ...{ signal: new AbortController().signal, clock, random: Math.random },
      ...{ logger: silentLogger, migrate: 'auto' },
    })
  const [db, other] = [new DatabaseSync(file), new DatabaseSync(file)]
  t.after(async () => {
    for (const handle of [db, other]) handle.close()
    await dispose()
  })
  await (await connect(db)).close()
  // Should it be waited for after all, the process stands still for a minute.
  db.exec('PRAGMA busy_timeout = 60000')
  other.exec('BEGIN IMMEDIATE')
  const startedAt = clock.now()
  await (await connect(db)).close()
  assert.ok(clock.now() - startedAt < 30_000)
  other.exec('COMMIT')
  db.exec('BEGIN')
  await (await connect(db)).close()
  other.exec('BEGIN IMMEDIATE')
  other.exec('COMMIT')
  db.exec('COMMIT')
})

test('sqlite: a file is looked at for news of other processes as long as somebody waits, and no longer', async () => {
  let looks = 0
  const time = virtualClock()
  const db = new DatabaseSync(':memory:')
  const bell = openDatabaseBell({
    ...{ identity: sqliteIdentity(db), clock: time, pollMs: 10 },
    changed: () => {
      looks += 1
      return looks === 3
    },
  })
  const stop = new AbortController()
  let rung = false
  const hearing = bell.wait(1, bell.rings(1), 60_000, stop.signal).then(() => {
    rung = true
  })
  await time.advance(29)
  assert.deepEqual([looks, rung], [2, false])
  await time.advance(1)
  await hearing
  assert.equal(looks, 3)
  const waiting = bell.wait(1, bell.rings(1), 60_000, stop.signal)
  await time.advance(20)
  assert.equal(looks, 5)
  stop.abort()
  await waiting
  await time.advance(60_000)
  assert.equal(looks, 5)
  bell.close()
  db.close()
})
