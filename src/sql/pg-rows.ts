import type { Row } from './executor.ts'

/**
 * How our own statements read values, whatever parsers the user has set for the rest of the program. Our statements
 * select text, int4, float8, bool and bytea only: these look the same from every client.
 */
export const plainTypes = {
  getTypeParser: (oid: number): ((text: string) => unknown) => parsers[oid] ?? asText,
} as const

const asText = (text: string): string => text

const parsers: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => text === 't',
  17: (text) => Buffer.from(text.slice(2), 'hex'),
  21: Number,
  23: Number,
  700: Number,
  701: Number,
}

/** postgres.js may have been told to rename columns (`transform: postgres.camel`); ours are lower snake case. */
export function plainRows(rows: unknown): readonly Row[] {
  if (!Array.isArray(rows)) return []
  const list: readonly Row[] = rows
  const first = list[0]
  if (first === undefined || !Object.keys(first).some((name) => /[A-Z-]/.test(name))) return list
  return list.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [snakeCase(name), value])),
  )
}

function snakeCase(name: string): string {
  return name
    .replaceAll('-', '_')
    .replace(/(?<=.)[A-Z]/g, '_$&')
    .toLowerCase()
}
