import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { systemClock } from '../../model/clock.ts'
import { messageOfError } from '../../model/describe-error.ts'
import type { Call, Command } from '../command.ts'
import { errorFromText } from '../error-from-text.ts'
import { DONE, type ExitCode } from '../exit-code.ts'
import { type Explanation, explain, explanationText } from '../explanation.ts'
import { loadConfig } from '../load-config.ts'
import { ruleTable } from '../rule-table.ts'
import { readAll } from '../standard-input.ts'
import { UsageError } from '../usage-error.ts'
import { queueNamed } from '../with-app.ts'

export const explainError: Command = {
  name: 'explain-error',
  summary: 'say which class an error is, why, and what would happen next',
  operands: '[text|status|code|json|-]',
  minOperands: 0,
  maxOperands: 1,
  options: {
    header: {
      value: "'Name: value'",
      multiple: true,
      help: "of the response, for example 'Retry-After: 5'",
    },
    file: { value: '<file>', help: 'read the error from a file: JSON or text' },
    queue: {
      value: '<name>',
      help: "decide with this queue's retry options and rules; default: the defaults",
    },
  },
  notes: [
    'Takes an HTTP status (503), a Node code (ECONNRESET), a SQLSTATE (40001), an AWS name (ThrottlingException),',
    'a gRPC status (UNAVAILABLE), a code of ours, an error as JSON, or its text. Without any: the table of rules.',
  ],
  run: async (call): Promise<ExitCode> => {
    const text = await textOf(call)
    const headers = headersOf(call.values('header'))
    if (text === undefined) {
      if (call.values('header').length > 0 || call.is('queue')) {
        throw new UsageError(
          'explain-error needs an error: a status, a code, a text, JSON or --file',
        )
      }
      for (const line of ruleTable(call.out.json)) call.out.line(line)
      return DONE
    }
    const queue = call.is('queue') ? await queueOf(call) : undefined
    const given = errorFromText(text, headers)
    const found: Explanation = explain(given, queue, systemClock().now())
    if (call.out.json) call.out.data(found)
    else for (const line of explanationText(found)) call.out.line(line)
    return DONE
  },
}

async function textOf(call: Call): Promise<string | undefined> {
  const [operand] = call.operands
  const file = call.value('file')
  if (file !== undefined && operand !== undefined)
    throw new UsageError('explain-error takes an error or --file, not both')
  // Nothing of it is stored, so a stray byte in a log is no reason to say nothing.
  if (operand === '-') return new TextDecoder().decode(await readAll(call.io))
  if (file === undefined) return operand
  try {
    return await readFile(resolve(call.io.cwd, file), 'utf8')
  } catch (cause) {
    throw new UsageError(`--file ${file} cannot be read: ${messageOfError(cause)}`, { cause })
  }
}

function headersOf(lines: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^([\w-]+):\s*(.*?)\s*$/.exec(line) ?? []
      if (name === undefined || value === undefined) {
        throw new UsageError(`--header: expected 'Name: value', got ${JSON.stringify(line)}`)
      }
      return [name.toLowerCase(), value]
    }),
  )
}

async function queueOf(call: Call): Promise<ReturnType<typeof queueNamed>> {
  return queueNamed(await loadConfig(call.io.cwd, call.value('config')), call.value('queue') ?? '')
}
