import { type Command, commonOptions, type OptionRule } from './command.ts'

/** `millrace help`. */
export function overview(commands: readonly Command[]): string {
  const uses = commands.map((command) => `${command.name} ${command.operands}`.trimEnd())
  const width = Math.max(...uses.map((use) => use.length))
  const lines = commands.map(
    (command, i) => `  ${(uses[i] ?? '').padEnd(width)}  ${command.summary}`,
  )
  return [
    'millrace <command> [options]',
    '',
    ...lines,
    '',
    'Every command takes --config <file>, --json, --verbose and --help.',
    'Exit codes: 0 done, 1 failed, 2 wrong use. Durations: 500ms, 5s, 2m, 1h, 1d.',
  ].join('\n')
}

/** `millrace help <command>`. */
export function commandHelp(command: Command): string {
  const notes = command.notes ?? []
  return [
    `millrace ${command.name} ${command.operands}`.trimEnd(),
    '',
    `  ${command.summary}`,
    ...(notes.length > 0 ? ['', ...notes.map((note) => `  ${note}`)] : []),
    '',
    ...optionLines({ ...command.options, ...commonOptions }),
  ].join('\n')
}

function optionLines(options: Readonly<Record<string, OptionRule>>): readonly string[] {
  const entries = Object.entries(options).map(([name, rule]) => {
    const use = rule.value === undefined ? `--${name}` : `--${name} ${rule.value}`
    return [use, rule.help] as const
  })
  const width = Math.max(...entries.map(([use]) => use.length))
  return entries.map(([use, help]) => `  ${use.padEnd(width)}  ${help}`)
}
