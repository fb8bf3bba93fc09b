import { readFileSync } from 'node:fs'
import { nearest } from '../model/nearest.ts'
import { type Command, commonOptions } from './command.ts'
import { commands } from './commands/index.ts'
import { DONE, type ExitCode, WRONG_USE } from './exit-code.ts'
import { commandHelp, overview } from './help-text.ts'
import type { CliIo } from './io.ts'
import { output } from './output.ts'
import { parseCall } from './parse-call.ts'
import { reportFailure } from './report-failure.ts'
import { terminalJson } from './terminal-text.ts'
import { UsageError } from './usage-error.ts'

/**
 * Runs one command line (without `node` and the script) and answers the exit code: 0 done, 1 failed, 2 wrong use.
 * Never rejects.
 */
export async function main(argv: readonly string[], io: CliIo): Promise<number> {
  const out = output(io, { json: argv.includes('--json'), verbose: argv.includes('--verbose') })
  try {
    return await run(argv, io)
  } catch (error) {
    return reportFailure(error, out)
  }
}

async function run(argv: readonly string[], io: CliIo): Promise<ExitCode> {
  const { words, rest } = split(argv)
  const [first, second] = words
  if (first === undefined) return withoutCommand(rest, io)
  if (first === 'help') return help(words.slice(1), rest.includes('--json'), io)
  const command = find(`${first} ${second}`) ?? find(first)
  if (command === undefined) {
    if (rest.includes('--help') || rest.includes('-h'))
      return help(words, rest.includes('--json'), io)
    throw unknownCommand(first, second)
  }
  const operands = words.slice(command.name.split(' ').length)
  const call = parseCall(command, [...operands, ...rest], io)
  if (call.is('help')) return help(command.name.split(' '), call.out.json, io)
  return command.run(call)
}

/**
 * The words of the command come first, but `millrace --config a.ts stats` is understood too. What follows is left to
 * the command, in its order.
 */
function split(argv: readonly string[]): { words: readonly string[]; rest: readonly string[] } {
  const leading: string[] = []
  let i = 0
  while (argv[i]?.startsWith('--') && argv[i] !== '--') {
    const option = argv[i] ?? ''
    leading.push(option)
    i++
    const value = argv[i]
    if (commonOptions[option.slice(2)]?.value !== undefined && value !== undefined) {
      leading.push(value)
      i++
    }
  }
  const words: string[] = []
  const most = argv[i] === 'help' ? 3 : 2
  while (i < argv.length && words.length < most && !argv[i]?.startsWith('-'))
    words.push(argv[i++] ?? '')
  return { words, rest: [...argv.slice(i), ...leading] }
}

function find(name: string): Command | undefined {
  return commands.find((command) => command.name === name)
}

function withoutCommand(rest: readonly string[], io: CliIo): ExitCode {
  if (rest.includes('--version') || rest.includes('-v')) {
    const version = packageVersion()
    io.stdout.write(`${rest.includes('--json') ? terminalJson({ version }) : version}\n`)
    return DONE
  }
  if (rest.includes('--help') || rest.includes('-h')) return help([], rest.includes('--json'), io)
  const strange = rest.find((word) => !['--json', '--verbose'].includes(word))
  if (strange !== undefined)
    throw new UsageError(`expected a command before ${strange}; see millrace help`)
  io.stderr.write(`${overview(commands)}\n`)
  return WRONG_USE
}

function help(words: readonly string[], json: boolean, io: CliIo): ExitCode {
  if (words.length === 0) {
    const names = commands.map(({ name, operands, summary }) => ({ name, operands, summary }))
    io.stdout.write(`${json ? terminalJson(names) : overview(commands)}\n`)
    return DONE
  }
  const command = find(words.slice(0, 2).join(' ')) ?? find(words[0] ?? '')
  if (command !== undefined) {
    const { name, operands, summary } = command
    const options = { ...command.options, ...commonOptions }
    io.stdout.write(
      `${json ? terminalJson({ name, operands, summary, options }) : commandHelp(command)}\n`,
    )
    return DONE
  }
  const family = commands.filter(({ name }) => name.startsWith(`${words[0]} `))
  if (family.length === 0) throw unknownCommand(words[0] ?? '', words[1])
  io.stdout.write(`${family.map(commandHelp).join('\n\n')}\n`)
  return DONE
}

function unknownCommand(first: string, second: string | undefined): UsageError {
  const family = commands.filter(({ name }) => name.startsWith(`${first} `))
  if (family.length > 0) {
    const known = family.map(({ name }) => name.slice(first.length + 1))
    const near = second === undefined ? undefined : nearest(second, known)
    const what =
      second === undefined ? `${first} needs one of` : `no command "${first} ${second}"; there is`
    const hint =
      near === undefined
        ? `${what} ${known.join(', ')}`
        : `no command "${first} ${second}", did you mean "${first} ${near}"?`
    return new UsageError(hint)
  }
  const near = nearest(first, [
    ...new Set(commands.flatMap(({ name }) => [name, name.split(' ')[0] ?? name])),
    'help',
  ])
  return new UsageError(
    `no command ${JSON.stringify(first)}${near === undefined ? '; see millrace help' : `, did you mean "${near}"?`}`,
  )
}

/** src/cli and dist/cli are equally far from package.json. */
function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  return version
}
