import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MillraceError } from '../../src/model/errors.ts'
import { clearError, isBusy, sqliteFault } from '../../src/sql/sqlite-fault.ts'

/** The same error as node:sqlite and as better-sqlite3 throw it: number and name of sqlite.org/rescode.html. */
function errors(errcode: number, code: string): readonly Error[] {
  return [
    Object.assign(new Error('from node:sqlite'), { code: 'ERR_SQLITE_ERROR', errcode }),
    Object.assign(new Error('from better-sqlite3'), { code }),
  ]
}

type Told = readonly [errcode: number, code: string, fault: string]

const told: readonly Told[] = [
  [5, 'SQLITE_BUSY', 'unavailable retryable notApplied'],
  [261, 'SQLITE_BUSY_RECOVERY', 'unavailable retryable notApplied'],
  [517, 'SQLITE_BUSY_SNAPSHOT', 'unavailable retryable notApplied'],
  [262, 'SQLITE_LOCKED_SHAREDCACHE', 'unavailable retryable notApplied'],
  [15, 'SQLITE_PROTOCOL', 'unavailable retryable notApplied'],
  [14, 'SQLITE_CANTOPEN', 'unavailable retryable notApplied'],
  [13, 'SQLITE_FULL', 'unavailable retryable notApplied'],
  [4874, 'SQLITE_IOERR_SHMSIZE', 'unavailable retryable notApplied'],
  [10, 'SQLITE_IOERR', 'unavailable retryable unknown'],
  [1034, 'SQLITE_IOERR_FSYNC', 'unavailable retryable unknown'],
  [8, 'SQLITE_READONLY', 'denied final notApplied'],
  [1032, 'SQLITE_READONLY_DBMOVED', 'denied final notApplied'],
  [3, 'SQLITE_PERM', 'denied final notApplied'],
  [23, 'SQLITE_AUTH', 'denied final notApplied'],
  [18, 'SQLITE_TOOBIG', 'tooLarge final notApplied'],
  [11, 'SQLITE_CORRUPT', 'unknown final unknown'],
  [26, 'SQLITE_NOTADB', 'unknown final unknown'],
  [19, 'SQLITE_CONSTRAINT', 'unknown final notApplied'],
]

test('what went wrong in SQLite is told alike for both libraries, also by extended codes', () => {
  for (const [errcode, name, fault] of told) {
    for (const error of errors(errcode, name)) {
      const { code, retryable, outcome } = sqliteFault(error)
      const said = [code, retryable ? 'retryable' : 'final', outcome].join(' ')
      assert.equal(said, fault, `${name} ${error.message}`)
    }
  }
})

test('a lock is waited for, whichever lock it is, and nothing else is', () => {
  const waited = told.filter(([errcode, name]) => errors(errcode, name).every(isBusy))
  assert.deepEqual(
    waited.map(([, name]) => name),
    [
      'SQLITE_BUSY',
      'SQLITE_BUSY_RECOVERY',
      'SQLITE_BUSY_SNAPSHOT',
      'SQLITE_LOCKED_SHAREDCACHE',
      'SQLITE_PROTOCOL',
    ],
  )
  for (const [errcode, name] of told) {
    const [one, other] = errors(errcode, name).map(isBusy)
    assert.equal(one, other, name)
  }
})

test('a full disk is called that, also when the file of shared memory is the first that cannot grow', () => {
  for (const [errcode, name] of told) {
    for (const error of errors(errcode, name)) {
      const clear = clearError(error)
      const isFull = name === 'SQLITE_FULL' || name === 'SQLITE_IOERR_SHMSIZE'
      const isRead = name.startsWith('SQLITE_READONLY')
      const code = isFull ? 'MILLRACE_DISK_FULL' : isRead ? 'MILLRACE_DENIED' : undefined
      if (code === undefined) assert.equal(clear, error)
      else assert.ok(clear instanceof MillraceError && clear.code === code, name)
    }
  }
})
