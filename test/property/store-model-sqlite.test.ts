import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import { memoryStore, sqliteStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { byDepth } from '../depth.ts'
import { connectStore } from '../stores/store-harness.ts'
import { type Hands, type Step, steps } from './store-steps.ts'

const numRuns = byDepth({ quick: 60, full: 200, long: 3_000 })

test('a SQLite store answers every order of acts as the memory store does', async () => {
  await fc.assert(fc.asyncProperty(steps, compare), { numRuns })
})

async function compare(chosen: readonly Step[]): Promise<void> {
  const clock = virtualClock()
  const db = new DatabaseSync(':memory:')
  const model = await connectStore(memoryStore(), clock)
  const store = await connectStore(sqliteStore({ db }), clock)
  const both: readonly [Hands, Hands] = [
    { store: model, taken: [] },
    { store, taken: [] },
  ]
  for (const { name, run, passMs } of chosen) {
    const [expected, got] = [await run(both[0]), await run(both[1])]
    assert.deepEqual(got, expected, name)
    await clock.advance(passMs)
  }
  await store.close()
  db.close()
}
