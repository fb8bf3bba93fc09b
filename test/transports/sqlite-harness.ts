import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import Database from 'better-sqlite3'
import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { sqlite } from 'millrace/sqlite'
import { virtualClock } from 'millrace/testing'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector } from '../../src/transport/transport.ts'

/** The part of both clients that a test of ours uses. */
interface Handle {
  exec(sql: string): unknown
  close(): unknown
}

interface SubjectParts {
  readonly name: string
  readonly connector: Connector
  /** The user's own handle, with a transaction begun on it. */
  readonly userHandle: () => Handle
  readonly foreign: () => readonly unknown[]
  readonly dispose: () => Promise<void>
  /** True when everybody shares one handle, which then must stay open. */
  readonly shared: boolean
}

/** node:sqlite over a file; the user's transactions run on a handle of their own. */
export async function nodeFileHarness(): Promise<Harness> {
  const { file, dispose } = await databaseFile()
  return harness({
    name: 'sqlite (node:sqlite, file)',
    connector: sqlite({ file }),
    userHandle: () => new DatabaseSync(file),
    foreign: foreignHandles,
    dispose,
    shared: false,
  })
}

/** node:sqlite in memory: one handle for the user and for us. */
export async function nodeMemoryHarness(): Promise<Harness> {
  const db = new DatabaseSync(':memory:')
  return harness({
    name: 'sqlite (node:sqlite, :memory:)',
    connector: sqlite({ db }),
    userHandle: () => db,
    foreign: foreignHandles,
    dispose: async () => db.close(),
    shared: true,
  })
}

/** A better-sqlite3 handle over a file, the same one for every transaction of the user. */
export async function betterSqliteHarness(): Promise<Harness> {
  const { file, dispose } = await databaseFile()
  const db = new Database(file)
  return harness({
    name: 'sqlite (better-sqlite3, file)',
    connector: sqlite({ db }),
    userHandle: () => db,
    foreign: foreignHandles,
    async dispose() {
      db.close()
      await dispose()
    },
    shared: true,
  })
}

function harness({ name, connector, userHandle, foreign, dispose, shared }: SubjectParts): Harness {
  const time = virtualClock()
  const signal = new AbortController().signal
  let random = 0
  const connect: Harness['connect'] = () =>
    connector.connect({
      signal,
      clock: time,
      random: () => {
        random = (random + 0.371) % 1
        return random
      },
      logger: silentLogger,
      migrate: 'auto',
    })
  let queues = 0
  return {
    name,
    time,
    slow: 1,
    leaseMs: 500,
    connect,
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER, onDead = 'continue', ageingMs } = {}) {
      queues += 1
      const queue = `queue-${queues}`
      const transport = await connect()
      await transport.topology.ensure(
        [{ name: queue, owner, maxDepth, onDead, ...(ageingMs === undefined ? {} : { ageingMs }) }],
        signal,
      )
      await transport.close()
      return queue
    },
    async transaction() {
      const handle = userHandle()
      handle.exec('BEGIN IMMEDIATE')
      const end = async (how: string): Promise<void> => {
        handle.exec(how)
        if (!shared) handle.close()
      }
      return { tx: handle, commit: () => end('COMMIT'), rollback: () => end('ROLLBACK') }
    },
    foreignTransactions: foreign,
    dispose,
  }
}

function foreignHandles(): readonly unknown[] {
  const other = new DatabaseSync(':memory:')
  other.exec('BEGIN')
  const better = new Database(':memory:')
  better.exec('BEGIN')
  return [other, better, { query: async () => ({ rows: [] }) }, {}, 'tx', null, undefined]
}

export async function databaseFile(): Promise<{
  readonly file: string
  readonly dispose: () => Promise<void>
}> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-sqlite-'))
  return {
    file: join(folder, 'millrace.db'),
    dispose: () => rm(folder, { recursive: true, force: true }),
  }
}
