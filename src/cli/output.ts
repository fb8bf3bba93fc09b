import type { CliIo } from './io.ts'
import { terminalJson } from './terminal-text.ts'

/** Results go to stdout, everything said on the way to stderr. */
export interface Output {
  readonly json: boolean
  readonly verbose: boolean
  line(text: string): void
  /** The whole result of a command, or one line of a stream of results. */
  data(value: unknown): void
  /** Progress and remarks. */
  note(text: string): void
}

export function output(
  io: CliIo,
  options: { readonly json: boolean; readonly verbose: boolean },
): Output {
  return {
    ...options,
    line: (text) => void io.stdout.write(`${text}\n`),
    data: (value) => void io.stdout.write(`${terminalJson(value)}\n`),
    note: (text) => void io.stderr.write(`${text}\n`),
  }
}
