import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { postgresInbox, sqliteInbox } from 'millrace/inbox'
import { postgresOutbox, sqliteOutbox } from 'millrace/outbox'
import { postgres } from 'millrace/postgres'
import { sqlite } from 'millrace/sqlite'
import { virtualClock } from 'millrace/testing'
import { systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { messageOfError } from '../../src/model/describe-error.ts'
import { hasCode } from '../../src/model/errors.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector, Transport } from '../../src/transport/transport.ts'
import { queueSchema } from '../../src/transports/sqlite/schema.ts'
import { databaseFile } from './sqlite-harness.ts'

const { signal } = new AbortController()
const clock = virtualClock()

async function connect(
  connector: Connector,
  { queue = 'q', migrate = 'auto' }: { queue?: string; migrate?: 'auto' | 'check' } = {},
): Promise<Transport> {
  const transport = await connector.connect({
    signal,
    clock,
    random: Math.random,
    logger: silentLogger,
    migrate,
  })
  await transport.topology.ensure([{ name: queue, owner: 'team', maxDepth: undefined }], signal)
  return transport
}

function envelope(id: string, more: object = {}) {
  return { id, body: new Uint8Array([1]), headers: {}, priority: 0, ...more }
}

const rejects = (promise: Promise<unknown>, message: RegExp): Promise<void> =>
  assert.rejects(promise, (error: unknown) => {
    assert.match(String(error), message)
    assert.doesNotMatch(String(error), /\n/)
    return true
  })

test('every wrong option is named at once', () => {
  const wrong = { file: 'a.db', synchronous: 'off', pollMs: 0, durable: true }
  assert.throws(
    () => Reflect.apply(sqlite, undefined, [wrong]),
    (error) =>
      hasCode(error, 'MILLRACE_INVALID_OPTIONS') &&
      /durable.*'full' or 'normal', got "off".*pollMs: .*got 0/.test(String(error)),
  )
  for (const options of [
    {},
    { file: '' },
    { file: ':memory:' },
    { file: 'file:a.db' },
    { db: {} },
  ]) {
    assert.throws(() => Reflect.apply(sqlite, undefined, [options]), /expected|:memory:/)
  }
})

test('a file is in WAL mode and as durable as asked', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(sqlite({ file }))
  assert.equal(transport.traits.durability, 'disk')
  const handle = new DatabaseSync(file)
  assert.equal(handle.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal')
  handle.close()
  await transport.close()
  await (await connect(sqlite({ file, synchronous: 'normal' }))).close()
  await dispose()
})

test('a path where SQLite cannot work is refused with its name and what to do', async () => {
  const { file, dispose } = await databaseFile()
  await rejects(
    connect(sqlite({ file: join(dirname(file), 'missing', 'a.db') })),
    /missing.*folder exists/,
  )
  await mkdir(join(dirname(file), 'folder.db'))
  await rejects(
    connect(sqlite({ file: join(dirname(file), 'folder.db') })),
    /folder\.db.*could not be opened/,
  )
  await dispose()
})

test('a file that is no SQLite database is called that', async () => {
  const { file, dispose } = await databaseFile()
  await writeFile(file, '{ "name": "a package.json, mistaken for the database" }'.padEnd(2_000))
  await rejects(connect(sqlite({ file })), /\.db is not a SQLite database .*check the name/)
  await dispose()
})

test('where the database is: what was got is said, and so is a variable that may be unset', () => {
  const makers = { sqlite, sqliteInbox, sqliteOutbox, postgres, postgresInbox, postgresOutbox }
  const cases: readonly (readonly [RegExp, unknown, RegExp])[] = [
    [/sqlite/, undefined, /expected an object of options, got undefined/],
    [/postgres/, 'postgres://x', /expected an object of options, got "postgres:\/\/x"/],
    [/sqlite/, {}, /expected either file or db, got neither/],
    [/sqlite/, { file: undefined }, /got file: undefined; is the environment variable set\?/],
    [/sqlite/, { file: 'a', db: {} }, /got both/],
    [/sqlite/, { file: 5 }, /file: expected a path, got 5/],
    [/sqlite/, { db: {} }, /db: expected a DatabaseSync .*, got an empty object/],
    [/sqlite/, { fil: 'a' }, /unknown option "fil", did you mean "file"\?/],
    [/sqlite/, { file: 'a', synchronous: 'of' }, /synchronous: expected .*, got "of"/],
    [/postgres/, {}, /expected either url or pool, got neither/],
    [/postgres/, { url: undefined }, /got url: undefined; is the environment variable set\?/],
    [/postgres/, { url: '' }, /an empty text; is the environment variable set\?/],
    [/postgres/, { url: 'postgres://x', pool: {} }, /got both/],
    [/postgres/, { pool: {} }, /pool: expected .*, got an empty object/],
    [/postgres/, { url: 'mysql://u:hunter2@h/d' }, /one that begins with mysql:/],
    [/postgres/, { url: 'postgres://u:hunter2#x@h/d' }, /cannot be read.*percent-encoded/],
    [/postgres/, { url: 'postgres://x', schem: 'a' }, /did you mean "schema"\?/],
  ]
  for (const [which, options, expected] of cases) {
    const chosen = Object.entries(makers).filter(([name]) => which.test(name))
    assert.equal(chosen.length, 3)
    for (const [name, make] of chosen) {
      assert.throws(
        () => Reflect.apply(make, undefined, [options]),
        (error: Error) => {
          assert.ok(hasCode(error, 'MILLRACE_INVALID_OPTIONS'), `${name}: ${error}`)
          assert.match(error.message, expected, name)
          assert.doesNotMatch(error.message, /hunter2/)
          // Redaction, which every message passes on its way to a terminal, must have nothing to take.
          assert.equal(messageOfError(error), error.message)
          return true
        },
      )
    }
  }
})

test('a newer schema is refused, and an outdated one where only checking is allowed', async () => {
  const newest = queueSchema.migrations.length
  const { file, dispose } = await databaseFile()
  await rejects(connect(sqlite({ file }), { migrate: 'check' }), /does not exist.*millrace migrate/)
  new DatabaseSync(file).close()
  await rejects(
    connect(sqlite({ file }), { migrate: 'check' }),
    new RegExp(`version 0, this millrace needs ${newest}.*millrace migrate`),
  )
  await (await connect(sqlite({ file }))).close()
  await (await connect(sqlite({ file }), { migrate: 'check' })).close()
  const handle = new DatabaseSync(file)
  handle.exec("UPDATE millrace_meta SET value = '99' WHERE key = 'schema:queue'")
  handle.close()
  await rejects(
    connect(sqlite({ file })),
    new RegExp(`version 99, this millrace knows up to ${newest}; update the package`),
  )
  await dispose()
})

test('a file where somebody else has a table of a name of ours is refused with that name', async () => {
  const { file, dispose } = await databaseFile()
  const theirs = new DatabaseSync(file)
  for (const made of [
    'CREATE TABLE millrace_message (a)',
    'CREATE INDEX millrace_message ON other (a)',
    'CREATE VIEW "millrace_message" AS SELECT 1',
  ]) {
    theirs.exec('CREATE TABLE IF NOT EXISTS other (a)')
    theirs.exec(made)
    await rejects(
      connect(sqlite({ file })),
      /the SQLite database has a "millrace_message" already that is none of ours; nothing was made/,
    )
    const left = theirs.prepare("SELECT name FROM sqlite_schema WHERE name = 'millrace_meta'").all()
    assert.deepEqual(left, [])
    theirs.exec(made.replace(/^CREATE (\w+) (\S+).*$/, 'DROP $1 $2'))
  }
  theirs.close()
  await dispose()
})

test('a handle that may only read is refused when the app starts, whatever reads it', async () => {
  const { file, dispose } = await databaseFile()
  await (await connect(sqlite({ file }))).close()
  const narrowed = new DatabaseSync(file, { timeout: 700 })
  narrowed.exec('PRAGMA query_only = 1')
  const handles = [new DatabaseSync(file, { readOnly: true }), narrowed]
  const context = {
    signal,
    clock,
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  } as const
  for (const db of handles) {
    for (const migrate of ['auto', 'check'] as const) {
      await rejects(
        connect(sqlite({ db }), { migrate }),
        /sqlite: expected a handle for db that may write/,
      )
    }
    await rejects(
      sqliteOutbox({ db }).connect(context),
      /sqliteOutbox: expected a handle for db that/,
    )
    const needs = { ...context, neededTtlMs: 1_000, warn: () => undefined }
    await rejects(sqliteInbox({ db }).connect(needs), /sqliteInbox: expected a handle for db that/)
  }
  assert.deepEqual({ ...narrowed.prepare('PRAGMA busy_timeout').get() }, { timeout: 700 })
  // What writes elsewhere at this moment is no reason.
  const db = new DatabaseSync(file)
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const opened = await sqlite({ db }).connect(context)
  other.exec('ROLLBACK')
  await opened.close()
  for (const one of [...handles, db, other]) one.close()
  await dispose()
})

test('a handle of better-sqlite3 that may only read is refused, too', async () => {
  const { file, dispose } = await databaseFile()
  const writing = new Database(file)
  await (await connect(sqlite({ db: writing }))).close()
  const db = new Database(file, { readonly: true })
  await rejects(connect(sqlite({ db })), /expected a handle for db that may write/)
  db.close()
  writing.close()
  await dispose()
})

test('the same file has one identity, a copied one another', async () => {
  const { file, dispose } = await databaseFile()
  const first = await connect(sqlite({ file }))
  const second = await connect(sqlite({ file }))
  assert.equal(first.databaseId, second.databaseId)
  assert.match(String(first.databaseId), /^sqlite:[0-9a-f]{32}@/)
  const copy = `${file}.copy`
  const handle = new DatabaseSync(file)
  handle.prepare('VACUUM INTO ?').run(copy)
  handle.close()
  const third = await connect(sqlite({ file: copy }))
  assert.notEqual(third.databaseId, first.databaseId)
  for (const transport of [first, second, third]) await transport.close()
  await dispose()
})

test('a handle without an open transaction, or closed, is refused with the reason', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(sqlite({ file }))
  const handle = new DatabaseSync(file)
  const foreign = (pattern: RegExp) => (error: unknown) =>
    hasCode(error, 'MILLRACE_FOREIGN_TRANSACTION') && pattern.test(String(error))
  assert.throws(() => transport.transaction?.(handle), foreign(/begin one first/))
  handle.close()
  assert.throws(() => transport.transaction?.(handle), foreign(/is closed/))
  await transport.close()
  await dispose()
})

test('two SQLite libraries on one file in one process are refused: they drop each other’s locks', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(sqlite({ file }))
  const better = new Database(file)
  better.exec('BEGIN')
  assert.throws(() => transport.transaction?.(better), /node:sqlite.*better-sqlite3.*corrupt/)
  better.close()
  await transport.close()
  await dispose()
})

test('handles that give rows as arrays or integers as bigint are used all the same', async () => {
  const odd = new DatabaseSync(':memory:', { readBigInts: true, returnArrays: true })
  const better = new Database(':memory:')
  better.defaultSafeIntegers(true)
  for (const db of [odd, better]) {
    const transport = await connect(sqlite({ db }))
    await transport.send('q', [envelope('a', { headers: { h: '1' } })], { signal })
    const subscription = await transport.subscribe('q', {
      group: 'g',
      leaseMs: 500,
      maxInFlight: 1,
    })
    const [delivery] = await subscription.receive({ max: 1, waitMs: 0, signal })
    assert.ok(delivery)
    assert.deepEqual(delivery.envelope.headers, { h: '1' })
    assert.deepEqual(await subscription.settle([{ as: 'acked', delivery }]), [{ ok: true }])
    await transport.close()
    db.close()
  }
})

test('an empty in-memory handle is shared: our writes wait for the user’s transaction to end', async () => {
  const db = new DatabaseSync(':memory:')
  const transport = await connect(sqlite({ db }))
  db.exec('BEGIN')
  let done = false
  const sending = transport.send('q', [envelope('a')], { signal }).then((sent) => {
    done = true
    return sent
  })
  await clock.advance(100)
  assert.equal(done, false)
  db.exec('ROLLBACK')
  await clock.advance(100)
  assert.equal((await sending)[0]?.ok, true)
  assert.equal((await transport.browse?.gauge('q'))?.depth, 1)
  await transport.close()
  assert.equal(db.isOpen, true, 'the user’s handle stays open')
  db.close()
})

test('SQL in names, ids, keys, headers, reasons and cursors is only text', async () => {
  const { file, dispose } = await databaseFile()
  const evil = `'"; DROP TABLE millrace_message; --%_\\`
  const id = `'";DROP/**/TABLE/**/millrace_message;--%_\\`
  const transport = await connect(sqlite({ file }), { queue: evil })
  const remember = [
    { kind: 'idempotency', key: evil, fingerprint: evil, windowMs: 60_000 },
    { kind: 'dedupe', key: evil, fingerprint: undefined, windowMs: 60_000 },
  ] as const
  const sent = envelope(id, {
    headers: { [evil]: evil },
    idempotencyKey: evil,
    orderingKey: evil,
    remember,
  })
  assert.deepEqual(await transport.send(evil, [sent], { signal }), [
    { ok: true, id, duplicate: false },
  ])
  const again = await transport.send(evil, [envelope('other', { remember })], { signal })
  assert.deepEqual(again, [{ ok: true, id, duplicate: true }])
  const subscription = await transport.subscribe(evil, {
    group: evil,
    leaseMs: 500,
    maxInFlight: 1,
  })
  const [delivery] = await subscription.receive({ max: 1, waitMs: 0, signal })
  assert.ok(delivery)
  assert.equal(delivery.envelope.id, id)
  assert.equal(delivery.envelope.idempotencyKey, evil)
  assert.equal(delivery.envelope.orderingKey, evil)
  assert.deepEqual(delivery.envelope.headers, { [evil]: evil })
  const attempt = { at: 1, errorClass: 'permanent', code: evil, message: evil } as const
  await subscription.settle([
    { as: 'dead', delivery, reason: evil, errorClass: 'permanent', attempt },
  ])
  const { shelf, browse } = transport
  assert.ok(shelf && browse)
  assert.equal((await shelf.get(evil, id))?.reason, evil)
  assert.deepEqual((await shelf.list(evil, { limit: 5, cursor: `9_${evil}` })).items, [])
  await rejects(
    shelf.list(evil, { limit: 5, cursor: evil }),
    /expected the cursor of a page before/,
  )
  assert.deepEqual(await shelf.redrive(evil, [evil, id], { actor: evil, reason: evil }), [id])
  assert.equal((await shelf.audit(evil, 5))[0]?.actor, evil)
  assert.equal(await browse.cancel?.(evil, evil), false)
  assert.equal((await browse.gauge(evil)).depth, 1)
  await transport.close()
  await dispose()
})

test('NUL and lone surrogates in headers come back as they were', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(sqlite({ file }))
  const headers = { nul: 'a\0b', lone: 'a\ud800b', quote: '"\\\u2028', empty: '' }
  await transport.send('q', [envelope('a', { headers, body: new Uint8Array([0, 255, 0]) })], {
    signal,
  })
  const stored = await transport.browse?.get?.('q', 'a')
  assert.deepEqual(stored?.envelope.headers, headers)
  assert.deepEqual([...(stored?.envelope.body ?? [])], [0, 255, 0])
  await transport.close()
  await dispose()
})

test('a counter at its limit stays there and stops no batch', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(sqlite({ file }))
  await transport.send(
    'q',
    ['a', 'b', 'c'].map((id) => envelope(id)),
    { signal },
  )
  const handle = new DatabaseSync(file)
  const most = '9223372036854775807'
  handle.exec(
    `UPDATE millrace_message SET deliveries = ${most}, counted = ${most}, crashes = ${most}, redrives = ${most} WHERE id = 'b'`,
  )
  const subscription = await transport.subscribe('q', { group: 'g', leaseMs: 500, maxInFlight: 9 })
  const got = await subscription.receive({ max: 9, waitMs: 0, signal })
  assert.deepEqual(
    got.map((delivery) => delivery.envelope.id),
    ['a', 'b', 'c'],
  )
  assert.equal(got[1]?.deliveries, Number.MAX_SAFE_INTEGER)
  const attempt = { at: 1, errorClass: 'transient', code: 'X', message: 'x' } as const
  const settled = await subscription.settle(
    got.map((delivery) => ({ as: 'released', delivery, delayMs: 0, counted: true, attempt })),
  )
  assert.deepEqual(settled, [{ ok: true }, { ok: true }, { ok: true }])
  const stored = await transport.browse?.get?.('q', 'b')
  assert.equal(stored?.history.counted, Number.MAX_SAFE_INTEGER)
  // The holder vanishes: taking the messages back counts once more.
  assert.equal((await subscription.receive({ max: 9, waitMs: 0, signal })).length, 3)
  await clock.advance(600)
  const [alone] = await subscription.receive({ max: 9, waitMs: 0, signal })
  assert.equal(alone?.alone, true)
  handle.close()
  await transport.close()
  await dispose()
})

test('an exact total survives every path that adds or removes messages', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(sqlite({ file }))
  const handle = new DatabaseSync(file)
  const check = (expected: number): void => {
    assert.equal(handle.prepare('SELECT total FROM millrace_queue').get()?.total, expected)
    assert.equal(handle.prepare('SELECT count(*) AS n FROM millrace_message').get()?.n, expected)
  }
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  await transport.send(
    'q',
    ids.map((id) => envelope(id)),
    { signal },
  )
  await transport.send('q', [envelope('a'), envelope('x', { delayMs: 1_000 })], { signal })
  check(7)
  const subscription = await transport.subscribe('q', { group: 'g', leaseMs: 500, maxInFlight: 9 })
  const [a, b, c] = await subscription.receive({ max: 3, waitMs: 0, signal })
  assert.ok(a && b && c)
  await subscription.settle([
    { as: 'acked', delivery: a },
    { as: 'acked', delivery: a },
    { as: 'released', delivery: b, delayMs: 0, counted: false },
    { as: 'dead', delivery: c, reason: 'r', errorClass: 'permanent' },
  ])
  check(5)
  await transport.shelf?.redrive('q', ['c', 'c', 'nobody'], { actor: 'a', reason: 'r' })
  check(6)
  await transport.browse?.cancel?.('q', 'd')
  check(5)
  handle.exec('BEGIN IMMEDIATE')
  const inside = await transport.transaction?.(handle)
  await inside?.send('q', [envelope('y'), envelope('b')])
  handle.exec('ROLLBACK')
  check(5)
  assert.equal(await transport.browse?.purge?.('q'), 5)
  check(0)
  handle.close()
  await transport.close()
  await dispose()
})

test('a send that fails half way leaves nothing in a transaction that commits all the same', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(sqlite({ file }))
  const handle = new DatabaseSync(file)
  handle.exec(`CREATE TRIGGER refuse BEFORE INSERT ON millrace_message WHEN new.id = 'bad'
    BEGIN SELECT RAISE(ABORT, 'refused by a trigger'); END`)
  handle.exec('BEGIN IMMEDIATE')
  const inside = await transport.transaction?.(handle)
  assert.ok(inside)
  await inside.send('q', [envelope('first')])
  assert.throws(
    () => inside.send('q', [envelope('second'), envelope('bad')]),
    /refused by a trigger/,
  )
  handle.exec('COMMIT')
  handle.close()
  assert.equal((await transport.browse?.gauge('q'))?.depth, 1)
  assert.equal(await transport.browse?.get?.('q', 'second'), undefined)
  await transport.close()
  await dispose()
})

test('a drain that always finds work still lets timers have their turn', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(sqlite({ file }))
  const ids = Array.from({ length: 200 }, (_, at) => `m-${at}`)
  await transport.send(
    'q',
    ids.map((id) => envelope(id)),
    { signal },
  )
  const subscription = await transport.subscribe('q', { group: 'g', leaseMs: 500, maxInFlight: 1 })
  let left = ids.length
  let leftAtTimer: number | undefined
  systemClock().after(1, () => {
    leftAtTimer = left
  })
  for (; left > 0; left--) {
    const [delivery] = await subscription.receive({ max: 1, waitMs: 0, signal })
    assert.ok(delivery)
    await subscription.settle([{ as: 'acked', delivery }])
  }
  assert.ok(leftAtTimer !== undefined, 'the timer had to wait for the end of the drain')
  await transport.close()
  await dispose()
})

test('sends and settlements wait for the disk; claims and renewals, which die with the machine, do not', async () => {
  const executed: string[] = []
  class Watched extends DatabaseSync {
    override exec(sql: string): void {
      executed.push(sql)
      super.exec(sql)
    }
  }
  /** How durable the commits of this act were. */
  const levelsOf = async (act: () => Promise<unknown> | undefined): Promise<readonly string[]> => {
    const from = executed.length
    await act()
    return executed
      .map((sql, at) => ({ sql, at }))
      .filter(({ sql, at }) => at >= from && sql === 'COMMIT')
      .map(({ at }) => executed.slice(0, at).findLast((sql) => sql.includes('synchronous')) ?? '')
  }
  const { file, dispose } = await databaseFile()
  const full = ['PRAGMA synchronous = FULL']
  const normal = ['PRAGMA synchronous = NORMAL']
  for (const synchronous of ['full', 'normal'] as const) {
    const db = new Watched(file)
    const transport = await connect(sqlite({ db, synchronous }))
    const durable = synchronous === 'full' ? full : normal
    const subscription = await transport.subscribe('q', {
      group: 'g',
      leaseMs: 500,
      maxInFlight: 1,
    })
    const id = `m-${synchronous}`
    assert.deepEqual(await levelsOf(() => transport.send('q', [envelope(id)], { signal })), durable)
    let got: readonly Delivery[] = []
    const receive = async (): Promise<void> => {
      got = await subscription.receive({ max: 1, waitMs: 0, signal })
    }
    assert.deepEqual(await levelsOf(receive), normal)
    const [delivery] = got
    assert.ok(delivery)
    assert.deepEqual(await levelsOf(() => subscription.renew?.([delivery], 500)), normal)
    assert.deepEqual(
      await levelsOf(() => subscription.settle([{ as: 'acked', delivery }])),
      durable,
    )
    await transport.close()
    db.close()
  }
  await dispose()
})

test('the printed SQL, applied by hand, is the schema that a check accepts', async () => {
  const { file, dispose } = await databaseFile()
  const connector = sqlite({ file })
  const handle = new DatabaseSync(file)
  handle.exec(connector.migrationSql?.() ?? '')
  handle.close()
  await (await connect(connector, { migrate: 'check' })).close()
  await dispose()
})
