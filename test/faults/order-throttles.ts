import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { seededRandom } from '../../src/testing/seeded-random.ts'

export interface ThrottledStep {
  readonly key: string
  readonly number: number
}

/**
 * Which steps are told to come later, and what came of it. In a file of its own that outlives the workers, so that each step is told so a
 * bounded number of times, whoever has it. The effects' file would not do: a transaction of this very process may be open in it.
 */
export interface Throttles {
  /** A run begins: the wait that it is told in ms, 0 for "later" without a time. Undefined when it is told nothing, or often enough. */
  began(step: ThrottledStep & { readonly id: string }, attempt: number): number | undefined
  /**
   * By the worker, of a run whose end it could not tell as a throttle. It took too long, on a busy machine; or its claim had ended
   * by then, and the backend takes it for one that vanished: this process was stopped, or stood still, with it in hand. Whatever it
   * was told, it spent an attempt.
   */
  spent(id: string): void
  /** By the producer, when the backend has confirmed them. */
  stored(steps: readonly ThrottledStep[]): void
  /** By the producer: since this moment the backend was away, or cut off, and has just come back. */
  troubled(sinceMs: number): void
  /** Fails unless steps of all so many keys were told to come later while others of their key waited, and no attempt was spent for it. */
  assertUncounted(keys: number): ThrottleCounts
  close(): void
}

export interface ThrottleCounts {
  readonly told: number
  /** Of a key of which more was stored already. */
  readonly beforeOthers: number
  /** Came again to the same worker at once, so their attempts can be compared. */
  readonly compared: number
  /** Likewise, but that worker said that an attempt was spent. */
  readonly spent: number
}

const SHARE = 0.25
const TIMES_MAX = 3
const WAITS_MS = [0, 20, 150]
/** So short that nobody can well have vanished with it in between, which does cost an attempt, and have begun no run of it before. */
const AT_ONCE_MS = 2_000
/** For so long after it a client may still come back. What was given back meanwhile may not have arrived, and is taken for a crash. */
const AFTER_TROUBLE_MS = 5_000

export function openThrottles(file: string, seed: string): Throttles {
  const db = new DatabaseSync(file, { timeout: 10_000 })
  // Workers are killed, the machine is not.
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF')
  db.exec(`
    CREATE TABLE IF NOT EXISTS run (
      n INTEGER PRIMARY KEY, id TEXT, key TEXT, number INTEGER, attempt INTEGER, pid INTEGER, at INTEGER, told INTEGER);
    CREATE INDEX IF NOT EXISTS run_of ON run (key, number);
    CREATE TABLE IF NOT EXISTS spent (id TEXT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS trouble (since INTEGER, until INTEGER);
    CREATE TABLE IF NOT EXISTS stored (key TEXT, number INTEGER, at INTEGER, PRIMARY KEY (key, number))`)
  const toldSoFar = db.prepare(
    'SELECT count(*) AS told FROM run WHERE key = ? AND number = ? AND told',
  )
  const addRun = db.prepare(
    'INSERT INTO run (id, key, number, attempt, pid, at, told) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  const addSpent = db.prepare('INSERT OR IGNORE INTO spent VALUES (?)')
  const addTrouble = db.prepare('INSERT INTO trouble VALUES (?, ?)')
  const addStored = db.prepare('INSERT INTO stored VALUES (?, ?, ?)')
  return {
    began: ({ id, key, number }, attempt) => {
      const waits = waitsOf(seed, key, number)
      const waitMs = waits[Number(toldSoFar.get(key, number)?.['told'])]
      addRun.run(id, key, number, attempt, process.pid, Date.now(), waitMs === undefined ? 0 : 1)
      return waitMs
    },
    spent: (id) => void addSpent.run(id),
    troubled: (sinceMs) => void addTrouble.run(sinceMs, Date.now() + AFTER_TROUBLE_MS),
    stored: (steps) => {
      db.exec('BEGIN')
      for (const { key, number } of steps) addStored.run(key, number, Date.now())
      db.exec('COMMIT')
    },
    assertUncounted: (keys) => {
      const [told] = db.prepare(TOLD).all()
      const again = db.prepare(AGAIN).all(AT_ONCE_MS)
      const counting = again.filter(({ spent }) => spent === 0)
      const spent = again.length - counting.length
      assert.equal(told?.['keys'], keys, 'keys of which a step was throttled before others')
      assert.ok(counting.length > 0, 'no throttled step came again to its worker at once')
      assert.ok(
        spent < counting.length,
        `${spent} ended otherwise, ${counting.length} as throttles`,
      )
      assert.deepEqual(
        counting.filter(({ attempt, before }) => Number(attempt) > Number(before)),
        [],
        'a throttle spent an attempt',
      )
      const { all, beforeOthers } = told ?? {}
      return {
        told: Number(all),
        beforeOthers: Number(beforeOthers),
        compared: counting.length,
        spent,
      }
    },
    close: () => db.close(),
  }
}

/** One for each time that the step is told so. */
function waitsOf(seed: string, key: string, number: number): readonly number[] {
  const random = seededRandom(`${seed} ${key} ${number}`)
  if (random() >= SHARE) return []
  const times = 1 + Math.floor(random() * TIMES_MAX)
  return Array.from({ length: times }, () => WAITS_MS[Math.floor(random() * WAITS_MS.length)] ?? 0)
}

const TOLD = `
  WITH told AS (
    SELECT key, EXISTS (
      SELECT 1 FROM stored WHERE stored.key = run.key AND stored.number > run.number AND stored.at <= run.at
    ) AS before FROM run WHERE told)
  SELECT count(*) AS "all", sum(before) AS beforeOthers, count(DISTINCT CASE WHEN before THEN key END) AS keys FROM told`

const AGAIN = `
  WITH next AS (
    SELECT id, key, number, attempt, pid, at, lag(attempt) OVER of AS before,
      lag(pid) OVER of AS pidBefore, lag(at) OVER of AS atBefore, lag(told) OVER of AS toldBefore
    FROM run WINDOW of AS (PARTITION BY key, number ORDER BY n))
  SELECT key, number, before, attempt, id IN (SELECT id FROM spent) AS spent FROM next
  WHERE toldBefore AND pid = pidBefore AND at - atBefore < ?
    AND NOT EXISTS (SELECT 1 FROM trouble WHERE since <= at AND until >= atBefore)`
