import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createMillrace, defineQueue } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { queueSchema } from '../../src/transports/sqlite/schema.ts'
import { until } from './until.ts'

const NOW = Date.now() - 1_000

/** A file as version 1 of the schema left it: keys travelled, and nobody kept them in order. */
function oldFile(file: string): void {
  const db = new DatabaseSync(file)
  db.exec(`${queueSchema.migrations[0]}
    CREATE TABLE millrace_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    INSERT INTO millrace_meta VALUES ('schema:queue', '1'), ('store_id', 'old');
    INSERT INTO millrace_queue (id, name, owner, total) VALUES (1, 'steps', 'team', 7);`)
  const insert = db.prepare(`
    INSERT INTO millrace_message
      (queue_id, id, state, priority, ready_at, sent_at, lease_until, ordering_key, headers, body)
    VALUES (1, ?, ?, 0, ?, ?, ?, ?, '{}', ?)`)
  const put = (name: string, state: number, leaseUntil: number, key: string | null): void => {
    const body = new TextEncoder().encode(JSON.stringify({ name }))
    insert.run(name, state, NOW, NOW, leaseUntil, key, body)
  }
  put('A1', 0, 0, 'A')
  put('A2', 0, 0, 'A')
  put('B1', 0, 0, 'B')
  // Two of one key in the hands of workers that are gone, and one that waits.
  put('C1', 2, 1, 'C')
  put('C2', 2, 1, 'C')
  put('C3', 0, 0, 'C')
  put('free', 0, 0, null)
  db.close()
}

test('messages that an older version stored are lined up by their keys, and none is stuck', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'old.db')
  oldFile(file)
  const steps = defineQueue({
    ...{ name: 'steps', owner: 'team', payload: z.object({ name: z.string() }) },
    orderingKey: ({ name }) => name.slice(0, 1),
    onDead: 'continue',
  })
  const app = await createMillrace({ transport: sqlite({ file }), queues: [steps] })
  t.after(() => app.close())
  const done: string[] = []
  const started: string[] = []
  const overlaps: string[] = []
  app.work(
    steps,
    async ({ payload: { name } }) => {
      started.push(name)
      // What is not held back by its key has begun by now.
      if (name === 'A1')
        await until('other keys done', () => done.includes('free') && done.includes('B1'))
      if (name === 'A1' && started.includes('A2')) overlaps.push('A2')
      done.push(name)
    },
    { concurrency: 8 },
  )
  await app.start()
  await until('all done', () => done.length === 7)
  assert.deepEqual(overlaps, [])
  assert.deepEqual(
    done.filter((name) => name.startsWith('A')),
    ['A1', 'A2'],
  )
  assert.equal(done.filter((name) => name.startsWith('C')).at(-1), 'C3')
})

test('what a process of an older version ended, moves on at the next start', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'queue.db')
  const steps = defineQueue({
    ...{ name: 'steps', owner: 'team', payload: z.object({ name: z.string() }) },
    orderingKey: ({ name }) => name.slice(0, 1),
    onDead: 'continue',
  })
  const open = () => createMillrace({ transport: sqlite({ file }), queues: [steps] })
  const before = await open()
  const { id } = await before.send(steps, { name: 'A1' })
  await before.send(steps, { name: 'A2' })
  await before.close()
  const db = new DatabaseSync(file)
  db.prepare('DELETE FROM millrace_message WHERE id = ?').run(id)
  db.exec('UPDATE millrace_queue SET total = total - 1')
  db.close()
  const app = await open()
  t.after(() => app.close())
  const done: string[] = []
  app.work(steps, ({ payload: { name } }) => void done.push(name))
  await app.start()
  await until('the next one done', () => done.includes('A2'))
})
