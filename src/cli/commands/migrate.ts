import { messageOfError } from '../../model/describe-error.ts'
import { hasCode } from '../../model/errors.ts'
import { storeToMigrate } from '../../runtime/own-store.ts'
import type { Call, Command } from '../command.ts'
import { DONE, type ExitCode, FAILED } from '../exit-code.ts'
import { loadConfig } from '../load-config.ts'
import { oneLine } from '../terminal-text.ts'
import { UsageError } from '../usage-error.ts'
import { withApp } from '../with-app.ts'

export const migrate: Command = {
  name: 'migrate',
  summary: 'bring the schemas of transport, store, inbox and outbox up to date',
  operands: '',
  minOperands: 0,
  maxOperands: 0,
  options: {
    check: { help: 'change nothing; exit code 1 when something is outdated' },
    'print-sql': { help: 'print the SQL of all versions, for a DBA; no database is opened' },
  },
  notes: ['Forward only, and safe while workers run and when many start it at once.'],
  run: (call) => {
    if (call.is('check') && call.is('print-sql'))
      throw new UsageError('migrate takes --check or --print-sql, not both')
    if (call.is('print-sql')) return printSql(call)
    return call.is('check') ? check(call) : bringUp(call)
  },
}

async function bringUp(call: Call): Promise<ExitCode> {
  await withApp(call, 'always', () => Promise.resolve(), storeToMigrate)
  if (call.out.json) call.out.data({ upToDate: true })
  else call.out.line('the schema is up to date')
  return DONE
}

async function check(call: Call): Promise<ExitCode> {
  try {
    await withApp(call, 'check', () => Promise.resolve(), storeToMigrate)
  } catch (error) {
    if (!hasCode(error, 'MILLRACE_SCHEMA_OUTDATED')) throw error
    if (call.out.json) call.out.data({ upToDate: false, reason: messageOfError(error) })
    else call.out.line(oneLine(messageOfError(error)))
    return FAILED
  }
  if (call.out.json) call.out.data({ upToDate: true })
  else call.out.line('the schema is up to date')
  return DONE
}

async function printSql(call: Call): Promise<ExitCode> {
  const { config, name } = await loadConfig(call.io.cwd, call.value('config'))
  const parts = [config.transport, storeToMigrate(config), config.inbox, config.outbox].filter(
    (part) => part !== undefined,
  )
  const scripts = parts.flatMap((part) => {
    const sql = part.migrationSql?.()
    return sql === undefined ? [] : [{ name: part.name, sql }]
  })
  if (scripts.length === 0) {
    throw new UsageError(
      `${name} uses transport "${config.transport.name}", which has no SQL schema`,
    )
  }
  if (call.out.json) call.out.data(scripts)
  else for (const { sql } of scripts) call.out.line(sql.trimEnd())
  return DONE
}
