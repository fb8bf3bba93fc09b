import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { Outbox } from 'millrace/outbox'
import { sqliteOutbox } from 'millrace/outbox'
import {
  envelope,
  type OutboxSubject,
  outboxContext,
  postgresOutboxClients,
} from './outbox-subjects.ts'
import { NO_SERVER, postgresServers } from './postgres-servers.ts'
import { databaseFile } from './sqlite-harness.ts'
import { until } from './until.ts'

const KEYS = 30
/** At least so many; more until enough relays were killed. */
const PER_KEY = 12
const PER_KEY_MAX = 120
const RELAYS = 3
const DEATHS = 6

if (postgresServers().length === 0) test('relays on postgres', { skip: NO_SERVER }, () => {})

test('sqlite: three relays that are killed lose nothing and keep the order of every key', async () => {
  const { file, dispose } = await databaseFile()
  const outbox = await sqliteOutbox({ file }).connect(outboxContext())
  const begin: OutboxSubject['begin'] = async () => {
    const db = new DatabaseSync(file, { timeout: 10_000 })
    db.exec('BEGIN IMMEDIATE')
    const end = async (how: string): Promise<void> => {
      db.exec(how)
      db.close()
    }
    return { tx: db, commit: () => end('COMMIT'), rollback: () => end('ROLLBACK') }
  }
  await campaign(outbox, begin, ['sqlite', file])
  await outbox.close()
  await dispose()
})

for (const { name, pooled, open } of postgresOutboxClients()) {
  if (pooled || !name.endsWith('a client of pg')) continue
  test(`${name}: three relays that are killed lose nothing and keep the order of every key`, async () => {
    const subject = await open()
    const outbox = await subject.connect()
    await campaign(outbox, subject.begin, ['postgres', subject.url, subject.schema])
    await outbox.close()
    await subject.dispose()
  })
}

async function campaign(
  outbox: Outbox,
  begin: OutboxSubject['begin'],
  args: readonly string[],
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-broker-'))
  const broker = join(folder, 'broker')
  await writeFile(broker, '')
  const fleet = supervise([...args, broker])
  try {
    const committed = await writeAll(outbox, begin, () => fleet.deaths() >= DEATHS)
    await until('all rows to leave', async () => (await outbox.lag()).rows === 0, 60_000)
    assert.equal(fleet.deaths(), DEATHS)
    judge(committed, (await readFile(broker, 'utf8')).trim().split('\n'))
  } finally {
    await fleet.stop()
    await rm(folder, { recursive: true })
  }
}

/** Ids of each key, in the order in which their transactions committed. Every tenth transaction is rolled back. */
type Committed = ReadonlyMap<string, readonly string[]>

async function writeAll(
  outbox: Outbox,
  begin: OutboxSubject['begin'],
  isEnough: () => boolean,
): Promise<Committed> {
  const committed = new Map<string, string[]>()
  let transactions = 0
  for (let n = 0; n < PER_KEY || (n < PER_KEY_MAX && !isEnough()); n++) {
    for (let key = 0; key < KEYS; key++) {
      const orderingKey = `k-${key}`
      const batch = [envelope({ orderingKey }), envelope()]
      const user = await begin()
      await (await outbox.transaction(user.tx))?.add('orders', batch)
      transactions += 1
      if (transactions % 10 === 0) {
        await user.rollback()
        continue
      }
      await user.commit()
      for (const { id, orderingKey: of = 'free' } of batch) {
        committed.set(of, [...(committed.get(of) ?? []), id])
      }
    }
  }
  return committed
}

function judge(committed: Committed, taken: readonly string[]): void {
  const first = [...new Set(taken)]
  const expected = [...committed.values()].flat()
  assert.deepEqual(
    [...first].sort(),
    [...expected].sort(),
    'something was lost, or never committed',
  )
  const keyOf = new Map([...committed].flatMap(([key, ids]) => ids.map((id) => [id, key] as const)))
  const order = Map.groupBy(first, (id) => keyOf.get(id))
  for (const [key, ids] of committed) {
    if (key !== 'free') assert.deepEqual(order.get(key), ids, `the order of ${key}`)
  }
}

interface Fleet {
  deaths(): number
  stop(): Promise<void>
}

/** Keeps relays running; the first ones kill themselves when the broker has taken some of their messages. */
function supervise(args: readonly string[]): Fleet {
  const script = new URL('./outbox-relay-process.ts', import.meta.url).pathname
  const running = new Set<ChildProcess>()
  let mortal = DEATHS
  let deaths = 0
  let stopping = false

  const keepOne = async (): Promise<void> => {
    while (!stopping) {
      const diesAfter = mortal-- > 0 ? 10 + mortal * 7 : 'never'
      const child = spawn(
        process.execPath,
        ['--conditions=millrace-source', script, ...args, String(diesAfter)],
        { stdio: ['ignore', 'ignore', 'inherit'] },
      )
      running.add(child)
      const [, signal] = await once(child, 'exit')
      running.delete(child)
      if (stopping) return
      assert.equal(signal, 'SIGKILL')
      deaths += 1
    }
  }
  const all = Promise.all(Array.from({ length: RELAYS }, keepOne))
  return {
    deaths: () => deaths,
    stop: async () => {
      stopping = true
      for (const child of running) child.kill('SIGKILL')
      await all
    },
  }
}
