import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sqlite } from 'millrace/sqlite'
import { virtualClock } from 'millrace/testing'
import { hasCode, MillraceError } from '../../src/model/errors.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector, Transport } from '../../src/transport/transport.ts'
import { databaseFile } from '../transports/sqlite-harness.ts'

const { signal } = new AbortController()

async function connect(connector: Connector): Promise<Transport> {
  const transport = await connector.connect({
    signal,
    clock: virtualClock(),
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  })
  await transport.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], signal)
  return transport
}

function envelope(n: number, bytes = 5_000) {
  return { id: `m-${n}`, body: new Uint8Array(bytes).fill(1), headers: {}, priority: 0 }
}

/** Sends until it no longer works; answers how many were confirmed and what was thrown then. */
async function fill(transport: Transport): Promise<{ stored: number; error: unknown }> {
  for (let stored = 0; stored < 100_000; stored++) {
    try {
      await transport.send('q', [envelope(stored)], { signal })
    } catch (error) {
      return { stored, error }
    }
  }
  return assert.fail('the disk never became full')
}

function assertDiskFull(transport: Transport, error: unknown): void {
  assert.ok(error instanceof MillraceError)
  assert.equal(error.code, 'MILLRACE_DISK_FULL')
  assert.doesNotMatch(error.message, /\n/)
  const { code, outcome, cause } = transport.diagnose(error)
  assert.deepEqual({ code, outcome }, { code: 'unavailable', outcome: 'notApplied' })
  assert.ok(hasCode(cause, 'MILLRACE_DISK_FULL'))
}

function assertIntact(handle: DatabaseSync, messages: number): void {
  assert.equal(handle.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok')
  assert.equal(handle.prepare('SELECT count(*) AS n FROM millrace_message').get()?.n, messages)
  assert.equal(handle.prepare('SELECT total FROM millrace_queue').get()?.total, messages)
}

/** A file system of its own in 1 MiB of memory; needs root, so that elsewhere only the page limit is tested. */
function mountSmallDisk(folder: string): boolean {
  try {
    const options = ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]
    execFileSync('mount', options, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

test('a database that may not grow refuses with MILLRACE_DISK_FULL, keeps what it has and goes on later', async () => {
  const db = new DatabaseSync(':memory:')
  const transport = await connect(sqlite({ db }))
  db.exec('PRAGMA max_page_count = 100')
  const { stored, error } = await fill(transport)
  assert.ok(stored > 0)
  assertDiskFull(transport, error)
  assertIntact(db, stored)
  db.exec('PRAGMA max_page_count = 1000')
  const [sent] = await transport.send('q', [envelope(stored)], { signal })
  assert.equal(sent?.ok, true)
  assertIntact(db, stored + 1)
  await transport.close()
  db.close()
})

test("a full disk inside a user's transaction undoes the whole send and says so", async () => {
  const { file, dispose } = await databaseFile()
  const transport = await connect(sqlite({ file }))
  const db = new DatabaseSync(file)
  const pages = db.prepare('PRAGMA page_count').get()?.page_count
  db.exec(`PRAGMA max_page_count = ${Number(pages) + 3}`)
  db.exec('BEGIN IMMEDIATE')
  const inside = await transport.transaction?.(db)
  assert.ok(inside)
  const send = async (...batch: readonly ReturnType<typeof envelope>[]) => inside.send('q', batch)
  await send(envelope(1, 10))
  const error: unknown = await send(envelope(2, 10), envelope(3, 1_000_000)).catch(
    (e: unknown) => e,
  )
  assertDiskFull(transport, error)
  if (db.isTransaction) db.exec('COMMIT')
  const kept = db
    .prepare('SELECT id FROM millrace_message')
    .all()
    .map((row) => row.id)
  assert.ok(!kept.includes('m-2'), 'no part of the failed send is left')
  assertIntact(db, kept.length)
  db.close()
  await transport.close()
  await dispose()
})

test('a really full disk gives a clear error and a file that passes its check', async (t) => {
  const { file, dispose } = await databaseFile()
  const folder = dirname(file)
  if (!mountSmallDisk(folder)) {
    t.diagnostic('a small file system cannot be mounted here; only the page limit was tested')
    await dispose()
    return
  }
  try {
    const transport = await connect(sqlite({ file }))
    const { stored, error } = await fill(transport)
    assertDiskFull(transport, error)
    const gauge = await transport.browse?.gauge('q')
    assert.equal(gauge?.depth, stored)
    await transport.close()
    const handle = new DatabaseSync(file)
    assertIntact(handle, stored)
    handle.close()
  } finally {
    execFileSync('umount', [folder])
    await rm(folder, { recursive: true, force: true })
  }
})

test('a folder that may not be written to is refused with the file, the reason and what to do', async () => {
  const { file, dispose } = await databaseFile()
  const folder = dirname(file)
  const mounted = mountSmallDisk(folder)
  try {
    await (await connect(sqlite({ file }))).close()
    // Root may write anywhere but on a read-only file system; everybody else is stopped by the mode.
    if (mounted) execFileSync('mount', ['-o', 'remount,ro', folder])
    else await chmod(folder, 0o555)
    await assert.rejects(connect(sqlite({ file })), (error: unknown) => {
      assert.ok(error instanceof MillraceError)
      assert.equal(error.code, 'MILLRACE_DENIED')
      assert.ok(error.message.includes(file))
      assert.match(error.message, /must be writable/)
      return true
    })
  } finally {
    if (mounted) execFileSync('umount', [folder])
    else await chmod(folder, 0o755)
    await dispose()
  }
})

test('a read-only file in a folder that may be written to is refused in the same way', async () => {
  const { file, dispose } = await databaseFile()
  await (await connect(sqlite({ file }))).close()
  await chmod(dirname(file), 0o777)
  await chmod(file, 0o444)
  const child = fileURLToPath(new URL('sqlite-read-only.ts', import.meta.url))
  const args = ['--conditions=millrace-source', child, file]
  const said = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }))
  assert.equal(said.code, 'MILLRACE_DENIED')
  assert.ok(said.message.includes(file))
  assert.match(said.message, /must be writable; give this account the right/)
  await dispose()
})

test('a database that became read-only refuses with MILLRACE_DENIED and says what to do', async () => {
  const db = new DatabaseSync(':memory:')
  const transport = await connect(sqlite({ db }))
  db.exec('PRAGMA query_only = 1')
  const refused = await transport.send('q', [envelope(1)], { signal }).catch((e: unknown) => e)
  assert.ok(hasCode(refused, 'MILLRACE_DENIED'), String(refused))
  assert.match(String(refused), /give it the right to write/)
  assert.equal(transport.diagnose(refused).code, 'denied')
  await transport.close()
  db.close()
})
