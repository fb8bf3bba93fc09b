import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pause, systemClock } from '../../src/model/clock.ts'
import { backendUrl } from '../backends.ts'
import { byDepth } from '../depth.ts'
import { dropSchema, freshSchema } from '../transports/postgres-servers.ts'
import { freshPrefix } from '../transports/redis-servers.ts'
import { openStoreOf, QUEUE, type StoreSpec } from './store-child.ts'

const CHILD = fileURLToPath(new URL('./store-child.ts', import.meta.url))
const clock = systemClock()
const KILLS = byDepth({ quick: 3, full: 6, long: 40 })
const MESSAGES = byDepth({ quick: 150, full: 300, long: 2_000 })

/** A test that failed half way leaves nobody behind. */
const running = new Set<ChildProcess>()
afterEach(() => {
  for (const child of running) child.kill('SIGKILL')
})

const redis = backendUrl('redis 7')
const pg = backendUrl('postgres 18')

test('relays of a SQLite store, killed again and again, lose no message', async () => {
  await inFolder((folder) => campaign({ kind: 'sqlite', file: join(folder, 's.db') }, folder))
})

if (pg !== undefined) {
  test('relays of a Postgres store, killed again and again, lose no message', async () => {
    const schema = freshSchema()
    await inFolder((folder) => campaign({ kind: 'postgres', url: pg, schema }, folder))
    await dropSchema(pg, schema)
  })
}

if (redis !== undefined) {
  test('relays of a Redis store, killed again and again, lose no message', async () => {
    const spec = { kind: 'redis', url: redis, prefix: freshPrefix() } as const
    await inFolder((folder) => campaign(spec, folder))
  })
}

async function campaign(spec: StoreSpec, folder: string): Promise<void> {
  const sentFile = join(folder, 'sent')
  const sent = (): readonly string[] =>
    existsSync(sentFile) ? readFileSync(sentFile, 'utf8').split('\n').filter(Boolean) : []
  const store = await openStoreOf(spec)
  const ids = Array.from({ length: MESSAGES }, (_, at) => `m${at}`)
  await store.delayed.put(
    QUEUE,
    ids.map((id) => ({
      envelope: { id, body: new Uint8Array(10), headers: {}, priority: 0 },
      delayMs: 0,
    })),
  )
  const relays = [start(spec, sentFile), start(spec, sentFile)]
  for (let kill = 0; kill < KILLS; kill++) {
    const before = sent().length
    await until(`something more than ${before} was sent`, () => sent().length > before)
    const at = kill % relays.length
    relays[at]?.kill('SIGKILL')
    relays[at] = start(spec, sentFile)
    if ((await store.delayed.count(QUEUE)) === 0) assert.fail(`all was sent after ${kill} kills`)
  }
  await until('everything was sent', async () => (await store.delayed.count(QUEUE)) === 0)
  assert.deepEqual([...new Set(sent())].toSorted(), ids.toSorted())
  const doubles = sent().length - MESSAGES
  assert.ok(doubles <= KILLS * 3, `${doubles} were sent twice, more than the killed ones held`)
  const again = ids.map((id) => ({
    id: `other-${id}`,
    keys: [{ kind: 'dedupe', key: id, fingerprint: undefined, windowMs: 1_000 } as const],
  }))
  assert.deepEqual(
    await store.keys.reserve(QUEUE, again, 1_000),
    ids.map((id) => ({ as: 'duplicate', id })),
  )
  await store.close()
}

function start(spec: StoreSpec, sentFile: string): ChildProcess {
  const args = ['--conditions=millrace-source', CHILD, JSON.stringify(spec), sentFile]
  const child = spawn(process.execPath, args, { stdio: 'ignore' })
  running.add(child)
  child.once('close', () => running.delete(child))
  return child
}

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const endAt = clock.now() + 60_000
  while (!(await condition())) {
    if (clock.now() > endAt) assert.fail(`gave up after 60 s: ${what}`)
    await pause(clock, 5)
  }
}

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-store-crash-'))
  try {
    await run(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
