import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createMillrace, defineQueue, hasCode } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { virtualClock } from '../../src/testing/virtual-clock.ts'
import { databaseFile } from './sqlite-harness.ts'

const queue = defineQueue({ name: 'q', owner: 'team', payload: z.number() })

for (const memory of [false, true]) {
  test(`a transaction that was left open on the app's own handle ${memory ? 'in memory' : 'of a file'}: sends wait 30 s, and health says why`, async (t) => {
    const { file, dispose } = await databaseFile()
    const db = new DatabaseSync(memory ? ':memory:' : file)
    const clock = virtualClock()
    const transport = sqlite({ db })
    const inbox = sqliteInbox({ db })
    const app = await createMillrace({
      transport,
      inbox,
      queues: [queue],
      clock,
      logger: silentLogger,
    })
    t.after(async () => {
      if (db.isTransaction) db.exec('ROLLBACK')
      const closed = app.close({ timeoutMs: 0 })
      await clock.advance(10_000)
      await closed
      db.close()
      await dispose()
    })
    db.exec('BEGIN IMMEDIATE')
    await app.send(queue, 1, { tx: db })
    const sent = [app.send(queue, 2), app.sendBatch(queue, [3])].map((one) =>
      one.then(
        () => 'stored',
        (error: unknown) => hasCode(error, 'MILLRACE_UNAVAILABLE') && String(error),
      ),
    )
    const reasons = async (): Promise<readonly string[]> => {
      const health = app.health()
      await clock.advance(2_000)
      return (await health).reasons
    }
    await clock.advance(1_000)
    // In memory there is no other handle to ask with.
    if (!memory) assert.deepEqual(await reasons(), [])
    await clock.advance(5_000)
    assert.match(
      (await reasons())[0] ?? '',
      /^(SQLite database \S+|the SQLite database in memory): \d calls wait .* for \d s: a transaction is open on the handle that was given as db/,
    )
    await clock.advance(25_000)
    for (const one of await Promise.all(sent)) assert.match(String(one), /look for a transaction/)
    db.exec('COMMIT')
    await clock.advance(100)
    assert.deepEqual(await app.health(), { ok: true, reasons: [] })
    assert.equal((await app.admin.stats(queue)).depth, 1)
  })
}

for (const journal of ['DELETE', 'WAL']) {
  for (const [given, waitedMs] of [
    [2_000, 2_000],
    [undefined, 20_000],
    [600_000, 20_000],
  ] as const) {
    test(`a new file (${journal}) in which somebody has a transaction open: start says so after ${waitedMs} ms, with a busyTimeoutMs of ${given}`, async (t) => {
      const { file, dispose } = await databaseFile()
      const db = new DatabaseSync(file)
      db.exec(`PRAGMA journal_mode = ${journal}`)
      const clock = virtualClock()
      t.after(async () => {
        db.exec('ROLLBACK')
        db.close()
        await dispose()
      })
      db.exec('BEGIN IMMEDIATE')
      const from = clock.now()
      let refused: { readonly said: string; readonly afterMs: number } | undefined
      const transport = sqlite({ file, ...(given !== undefined && { busyTimeoutMs: given }) })
      void createMillrace({ transport, queues: [queue], clock, logger: silentLogger }).catch(
        (error: unknown) => {
          refused = { said: String(error), afterMs: clock.now() - from }
        },
      )
      for (let i = 0; i < 30 && refused === undefined; i++) await clock.advance(1_000)
      assert.match(
        refused?.said ?? '',
        new RegExp(`stayed locked for ${waitedMs} ms by another writer`),
      )
      assert.ok((refused?.afterMs ?? 0) <= waitedMs + 1_000, `after ${refused?.afterMs} ms`)
    })
  }
}
