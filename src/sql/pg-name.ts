import { OptionsError } from '../model/errors.ts'
import { show } from '../model/problems.ts'

/** Postgres cuts longer names without an error (manual, Identifiers), so they are refused. */
const NAME_MAX_BYTES = 63

/** A name as SQL reads it: quoted, whatever it contains. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function checkSchemaName(schema: unknown): string {
  const usable = typeof schema === 'string' && schema.length > 0 && !schema.includes('\0')
  if (usable && Buffer.byteLength(schema) <= NAME_MAX_BYTES && !schema.startsWith('pg_'))
    return schema
  throw new OptionsError('schema', [
    `expected the name of a Postgres schema, 1 to ${NAME_MAX_BYTES} bytes and not beginning with pg_, got ${show(schema)}`,
  ])
}

const PLACEHOLDER = '{schema}'

/** Puts the quoted schema into statements written with `{schema}`. */
export function inSchema(sql: string, schema: string): string {
  return sql.replaceAll(PLACEHOLDER, () => quoteIdentifier(schema))
}

/** The same for a whole set of named statements, once per connection. */
export function allInSchema<T extends Readonly<Record<string, string>>>(
  statements: T,
  schema: string,
): T {
  const entries = Object.entries(statements).map(([name, sql]) => [name, inSchema(sql, schema)])
  return Object.freeze(Object.fromEntries(entries))
}
