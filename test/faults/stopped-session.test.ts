import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PermanentError } from 'millrace'
import { backendUrl } from '../backends.ts'
import { deleteLanes, withChannel } from '../transports/rabbitmq-subjects.ts'
import { until } from '../transports/until.ts'
import { recorded } from './crash/recorder.ts'
import { type OrderPlace, openPlace } from './order-place.ts'

const WORKER = fileURLToPath(new URL('./stopped-worker.ts', import.meta.url))
const DEADLINE_MS = 60_000
const KEY = 'key'

/** What becomes of the first step with the worker that has it while the other one is stopped. */
type Meanwhile = 'dead' | 'done'

/** Goes on with it when the stopped worker has woken up and said what became of it there. */
async function stopAndWake(
  place: OrderPlace,
  recordFile: string,
  meanwhile: Meanwhile,
): Promise<void> {
  const sender = await openPlace(place)
  const other = await openPlace(place)
  const flags = ['--conditions=millrace-source', '--disable-warning=ExperimentalWarning']
  const sleeper = spawn(process.execPath, [...flags, WORKER, JSON.stringify(place), recordFile], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const answer = () =>
    recorded(recordFile).find(({ what }) => what === 'made' || what === 'refused')
  const wake = async (): Promise<void> => {
    sleeper.kill('SIGCONT')
    await until('the stopped worker goes on', () => answer() !== undefined, DEADLINE_MS)
  }
  const send = (number: number) => sender.app.send(sender.steps, { key: KEY, number })

  try {
    await send(1)
    const isStopped = (): boolean => recorded(recordFile).some(({ what }) => what === 'stopped')
    await until('it is stopped', isStopped, DEADLINE_MS)
    other.app.work(other.steps, async ({ payload: { key, number } }, ctx) => {
      if (number === 1 && meanwhile === 'dead') throw new PermanentError('given up')
      if (number === 1) await wake()
      await ctx.tx((tx) => {
        tx.prepare('INSERT INTO step (key, number) VALUES (?, ?)').run(key, number)
      })
    })
    await other.app.start()
    await send(2)
    await until('the next step', () => made(sender.db).includes(2), DEADLINE_MS)
    if (meanwhile === 'dead') await wake()
    assert.deepEqual(answer(), { what: 'refused', key: 'key 1', code: 'MILLRACE_LEASE_LOST' })

    // It comes back by itself, and has what nobody else works on.
    await other.app.close()
    await send(3)
    await until('the step after', () => made(sender.db).includes(3), DEADLINE_MS)
    assert.deepEqual(made(sender.db), meanwhile === 'dead' ? [2, 3] : [1, 2, 3])
  } finally {
    // Nobody writes into the folder any more when it is removed.
    const ended = sleeper.exitCode === null && sleeper.signalCode === null && once(sleeper, 'close')
    sleeper.kill('SIGKILL')
    await ended
    for (const { app, db } of [sender, other]) {
      await app.close({ timeoutMs: 0 })
      db.close()
    }
  }
}

/** In the order in which they were committed. */
function made(db: DatabaseSync): readonly number[] {
  const rows = db.prepare('SELECT number FROM step WHERE key = ? ORDER BY at').all(KEY)
  return rows.map(({ number }) => Number(number))
}

async function freshFiles(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-stopped-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return {
    files: { file: join(folder, 'effects.db'), storeFile: join(folder, 'store.db') },
    recordFile: join(folder, 'record.ndjson'),
  }
}

const rabbitUrl = backendUrl('rabbitmq')
const brokers = backendUrl('kafka')

for (const meanwhile of ['dead', 'done'] as const) {
  const whose = `whose message is ${meanwhile} elsewhere when it wakes up`
  if (rabbitUrl !== undefined) {
    test(`rabbitmq: a worker stopped past its heartbeat, ${whose}, commits nothing and goes on`, async (t) => {
      const { files, recordFile } = await freshFiles(t)
      const prefix = `stopped-${meanwhile}-${process.pid}-`
      t.after(() => withChannel(rabbitUrl, (channel) => deleteLanes(channel, `${prefix}steps`, 5)))
      const place = { kind: 'rabbitmq', url: rabbitUrl, prefix, ...files } as const
      await stopAndWake(place, recordFile, meanwhile)
    })
  }
  if (brokers !== undefined) {
    test(`kafka: a worker stopped past its session, ${whose}, commits nothing and goes on`, async (t) => {
      const { files, recordFile } = await freshFiles(t)
      const prefix = `stopped-${meanwhile}-${process.pid}-`
      const place = { kind: 'kafka', url: brokers, prefix, ...files } as const
      await stopAndWake(place, recordFile, meanwhile)
    })
  }
}
