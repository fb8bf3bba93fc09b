import type { ExitCode } from './exit-code.ts'
import type { CliIo } from './io.ts'
import type { Output } from './output.ts'

/** One command: what it takes, and what it does. */
export interface Command {
  /** `stats`, `dlq ls`. */
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** What follows the name: `<queue> <id…>`. */
  readonly operands: string
  readonly minOperands: number
  readonly maxOperands: number
  readonly options: Readonly<Record<string, OptionRule>>
  /** More lines for `millrace help <command>`. */
  readonly notes?: readonly string[]
  run(call: Call): Promise<ExitCode> | ExitCode
}

export interface OptionRule {
  /** `<n>`: the option takes a value. Absent: it is a switch. */
  readonly value?: string
  readonly multiple?: boolean
  readonly help: string
}

/** One use of a command, parsed. */
export interface Call {
  readonly command: Command
  readonly operands: readonly string[]
  readonly io: CliIo
  readonly out: Output
  /** The value of an option; the last one when it was given several times. */
  value(option: string): string | undefined
  values(option: string): readonly string[]
  is(option: string): boolean
}

/** Options that every command takes. */
export const commonOptions: Readonly<Record<string, OptionRule>> = {
  config: { value: '<file>', help: 'config file; default millrace.config.{ts,mts,js,mjs} here' },
  json: { help: 'print JSON' },
  verbose: { help: 'more detail; the stack of an unexpected failure' },
  help: { help: 'explain the command' },
}
