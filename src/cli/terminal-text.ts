import { printable } from '../model/redact.ts'

/**
 * What a stored message or a remote error says must not steer the terminal: C0 by `printable`, C1 here, and what turns the direction of
 * writing, so that a line reads otherwise than it is (Unicode Technical Report 36, 2.8).
 */
export function terminalText(text: string): string {
  return printable(text).replace(STEERING, '\ufffd')
}

const STEERING = /[\u0080-\u009f\u2028-\u202e\u200e\u200f\u061c\u2066-\u2069]/g

/** One line of at most `max` characters. */
export function oneLine(text: string, max = 500): string {
  const line = terminalText(text)
    .replace(/\s*[\r\n\t]+\s*/g, ' ')
    .trim()
  return line.length > max ? `${line.slice(0, max - 1)}…` : line
}

/** JSON that a terminal shows as it is; the escapes mean the same characters to a parser. */
export function terminalJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, (_key, held: unknown) => plainValue(held), indent) ?? 'null'
  return text.replace(
    /[\u007f-\u009f\u2028-\u202e\u200e\u200f\u061c\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Undefined means "the backend cannot say": present as null, so that scripts find the field. */
function plainValue(held: unknown): unknown {
  if (held === undefined) return null
  return typeof held === 'bigint' ? String(held) : held
}

/** Columns that line up; the last one is not padded. Numbers stand right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const lines = [head, ...rows.map((row) => row.map((cell) => oneLine(cell, CELL_MAX)))]
  const widths = head.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)))
  const right = head.map(
    (_, i) => rows.length > 0 && rows.every((row) => NUMBER.test(row[i] ?? '')),
  )
  return lines.map((line) =>
    line
      .map((cell, i) => (right[i] ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

const CELL_MAX = 120
const NUMBER = /^(?:[\d.]+|-|\?)$/

/** Epoch ms as people and logs read it. */
export function timeText(at: number | undefined): string {
  return at === undefined ? '-' : new Date(at).toISOString()
}
