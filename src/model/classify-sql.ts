import type { Classification } from './classify.ts'
import { type CodeRule, codeRulesAsTable, indexRules, type Rule } from './classify-rule.ts'
import { read, readInteger, readString } from './probe.ts'

/** By SQLSTATE or its beginning; the longest match decides. PostgreSQL manual, appendix A. */
const states: readonly CodeRule[] = [
  {
    codes: ['40001', '40P01', '40'],
    errorClass: 'transient',
    why: 'two transactions collided (serialization failure, deadlock); the next run may win',
  },
  { codes: ['40002'], errorClass: 'permanent', why: 'a constraint refused the commit' },
  { codes: ['55P03', '55006'], errorClass: 'transient', why: 'a lock was held by somebody else' },
  {
    codes: ['57014'],
    errorClass: 'transient',
    why: 'a statement timeout, or somebody cancelled it',
  },
  { codes: ['57'], errorClass: 'transient', why: 'the server stops, starts, or ended the session' },
  { codes: ['08'], errorClass: 'transient', why: 'the connection failed' },
  {
    codes: ['53'],
    errorClass: 'transient',
    why: 'the server was short of memory, disk or connections',
  },
  { codes: ['58', 'XX'], errorClass: 'transient', why: 'the server failed inside' },
  { codes: ['25006'], errorClass: 'transient', why: 'a read-only server, as during a failover' },
  { codes: ['25P03', '25P04'], errorClass: 'transient', why: 'the transaction took too long' },
  {
    codes: ['26'],
    errorClass: 'transient',
    why: 'a prepared statement was lost, as behind a pooler',
  },
  {
    codes: ['28', '3D'],
    errorClass: 'transient',
    why: 'the worker may not log in; the message is not at fault',
  },
  {
    codes: ['0A'],
    errorClass: 'transient',
    why: 'also raised once for plans that a migration outdated; a new connection is free of it',
  },
  { codes: ['21', '22'], errorClass: 'permanent', why: 'the values in the message do not fit' },
  {
    codes: ['23'],
    errorClass: 'permanent',
    why:
      'the same row breaks the same constraint again. A duplicate key mostly means that the effect was there already ' +
      '(ctx.tx remembers that); a missing parent is a question of order: throw TransientError to wait for it',
  },
  {
    codes: ['42'],
    errorClass: 'permanent',
    why: 'the statement is wrong, or may not touch this table',
  },
  {
    codes: ['44', '54'],
    errorClass: 'permanent',
    why: 'the row or the statement is beyond what is allowed',
  },
]

const byState = indexRules(states)

/** Names that MySQL clients give in `code`, where the SQLSTATE is only HY000. */
const mysql: readonly CodeRule[] = [
  {
    codes: ['ER_LOCK_WAIT_TIMEOUT', 'ER_CON_COUNT_ERROR'],
    errorClass: 'transient',
    why: 'the server was busy',
  },
]

const byMysqlName = indexRules(mysql)

/** By primary result code, sqlite.org/rescode.html. Both clients: names (better-sqlite3) and numbers (node:sqlite). */
const sqlite: readonly (CodeRule & { readonly numbers: readonly number[] })[] = [
  {
    codes: ['SQLITE_BUSY', 'SQLITE_LOCKED', 'SQLITE_PROTOCOL', 'SQLITE_SCHEMA', 'SQLITE_INTERRUPT'],
    numbers: [5, 6, 15, 17, 9],
    errorClass: 'transient',
    why: 'somebody else had the file',
  },
  {
    codes: [
      'SQLITE_FULL',
      'SQLITE_IOERR',
      'SQLITE_NOMEM',
      'SQLITE_CANTOPEN',
      'SQLITE_READONLY',
      'SQLITE_PERM',
      'SQLITE_CORRUPT',
      'SQLITE_NOTADB',
      'SQLITE_INTERNAL',
    ],
    numbers: [13, 10, 7, 14, 8, 3, 11, 26, 2],
    errorClass: 'transient',
    why: 'the disk or the file is in trouble; the message is not at fault',
  },
  {
    codes: ['SQLITE_CONSTRAINT', 'SQLITE_MISMATCH', 'SQLITE_TOOBIG', 'SQLITE_RANGE'],
    numbers: [19, 20, 18, 25],
    errorClass: 'permanent',
    why: 'the same values break the same rule again (as SQLSTATE 22 and 23)',
  },
  {
    codes: ['SQLITE_ERROR', 'SQLITE_MISUSE', 'SQLITE_AUTH'],
    numbers: [1, 21, 23],
    errorClass: 'permanent',
    why: 'the statement is wrong',
  },
]

const bySqliteName = indexRules(sqlite)
const bySqliteNumber = new Map(
  sqlite.flatMap((r) => r.numbers.map((n, i) => [n, [r, r.codes[i]] as const])),
)

export const sqlTable: readonly Rule[] = [
  ...codeRulesAsTable('SQLSTATE', states),
  ...codeRulesAsTable('SQLSTATE', mysql),
  ...codeRulesAsTable('SQLite', sqlite),
]

export function classifySql(error: unknown): Classification | undefined {
  const state = sqlState(error)
  return (
    (state === undefined ? undefined : classifyState(state)) ??
    classifyMysql(error) ??
    classifySqlite(error)
  )
}

function classifyState(state: string): Classification | undefined {
  const rule = byState.get(state) ?? byState.get(state.slice(0, 2))
  return rule && { errorClass: rule.errorClass, code: state, why: rule.why }
}

const SQLSTATE = /^[0-9A-Z]{5}$/

/** EPIPE looks like a SQLSTATE: without a word from the client that it is one, it must begin with a digit. */
function sqlState(error: unknown): string | undefined {
  const named = readString(error, 'sqlState') ?? readString(error, 'sqlstate')
  if (named !== undefined && SQLSTATE.test(named)) return named
  const code = readString(error, 'code')
  if (code === undefined || !SQLSTATE.test(code)) return undefined
  const fromClient = typeof read(error, 'severity') === 'string'
  return fromClient || /^[0-9]/.test(code) ? code : undefined
}

function classifyMysql(error: unknown): Classification | undefined {
  const code = readString(error, 'code')
  const rule = code === undefined ? undefined : byMysqlName.get(code)
  return code === undefined || rule === undefined
    ? undefined
    : { errorClass: rule.errorClass, code, why: rule.why }
}

function classifySqlite(error: unknown): Classification | undefined {
  const code = readString(error, 'code')
  if (code === undefined) return undefined
  if (code === 'ERR_SQLITE_ERROR') {
    // Extended codes keep the primary one in their low byte.
    const found = bySqliteNumber.get((readInteger(error, 'errcode') ?? 0) & 0xff)
    return found && { errorClass: found[0].errorClass, code: found[1] ?? code, why: found[0].why }
  }
  const primary = /^SQLITE_[A-Z]+/.exec(code)?.[0]
  const rule = primary === undefined ? undefined : bySqliteName.get(primary)
  return rule && { errorClass: rule.errorClass, code, why: rule.why }
}
