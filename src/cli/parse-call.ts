import { parseArgs } from 'node:util'
import { nearest } from '../model/nearest.ts'
import { type Call, type Command, commonOptions } from './command.ts'
import type { CliIo } from './io.ts'
import { output } from './output.ts'
import { UsageError } from './usage-error.ts'

/** @throws UsageError for unknown options, missing values and a wrong number of operands. */
export function parseCall(command: Command, args: readonly string[], io: CliIo): Call {
  const rules = { ...commonOptions, ...command.options }
  const { values, operands } = read(command, rules, args)
  const is = (option: string): boolean => values.has(option)
  const all = (option: string): readonly string[] => values.get(option) ?? []
  if (!is('help')) checkOperands(command, operands)
  return {
    command,
    operands,
    io,
    out: output(io, { json: is('json'), verbose: is('verbose') }),
    value: (option) => all(option).at(-1),
    values: all,
    is,
  }
}

interface Read {
  readonly values: ReadonlyMap<string, readonly string[]>
  readonly operands: readonly string[]
}

/** parseArgs splits the words; what it would say about them is said here, with the nearest known word. */
function read(command: Command, rules: Command['options'], args: readonly string[]): Read {
  const options = Object.fromEntries(
    Object.entries(rules).map(([name, rule]) => [
      name,
      {
        type: rule.value === undefined ? ('boolean' as const) : ('string' as const),
        multiple: true,
      },
    ]),
  )
  const { tokens } = parseArgs({
    args: [...args],
    options: { ...options, h: { type: 'boolean' } },
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const values = new Map<string, string[]>()
  const operands: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value)
    if (token.kind !== 'option') continue
    const name = token.name === 'h' ? 'help' : token.name
    const rule = rules[name]
    if (rule === undefined) throw unknownOption(command, token.rawName, Object.keys(rules))
    if (rule.value === undefined && token.value !== undefined) {
      throw new UsageError(`--${name} takes no value`)
    }
    if (rule.value !== undefined && (token.value === undefined || isOption(token))) {
      throw new UsageError(`--${name} needs a value: --${name} ${rule.value}`)
    }
    const before = values.get(name) ?? []
    if (before.length > 0 && rule.value !== undefined && rule.multiple !== true) {
      throw new UsageError(`--${name} was given twice`)
    }
    values.set(name, [...before, token.value ?? ''])
  }
  return { values, operands }
}

/** `--key --priority 3`: the value was forgotten. With `--key=--priority` it was not. */
function isOption(token: {
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}): boolean {
  return token.inlineValue !== true && (token.value ?? '').startsWith('--')
}

function unknownOption(command: Command, raw: string, known: readonly string[]): UsageError {
  const near = nearest(raw.replace(/^-+/, ''), known)
  const hint = near === undefined ? `see millrace help ${command.name}` : `did you mean --${near}?`
  return new UsageError(`millrace ${command.name} has no option ${raw}; ${hint}`)
}

/** The first of the needed words that is not there: `<id>`. Words after `|` are other ways to say it. */
function missing({ operands }: Command, given: number): string {
  const [first = ''] = operands.split(' | ')
  return (
    first
      .match(/<[^>]+>|'[^']+'|\S+/g)
      ?.slice(given)[0]
      ?.replace('…', '') ?? first
  )
}

function checkOperands(command: Command, operands: readonly string[]): void {
  const { minOperands, maxOperands } = command
  if (operands.length >= minOperands && operands.length <= maxOperands) return
  const what =
    operands.length < minOperands
      ? `${missing(command, operands.length)} is missing`
      : `${JSON.stringify(operands[maxOperands])} is too much`
  throw new UsageError(`${what}; usage: millrace ${command.name} ${command.operands}`.trimEnd())
}
