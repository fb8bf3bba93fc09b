/**
 * One parameter that holds a whole column of a batch, as Postgres writes arrays in text. The clients encode JavaScript
 * arrays each in its own way (postgres.js by the type of the first element), a text they both leave alone. Needs a cast
 * in the statement: `$1::text[]`.
 */
export function textArray(values: readonly (string | null)[]): string {
  let text = '{'
  for (let at = 0; at < values.length; at++) {
    const value = values[at]
    if (at > 0) text += ','
    text += value === null || value === undefined ? 'NULL' : `"${escaped(value)}"`
  }
  return `${text}}`
}

const SPECIAL = /["\\]/
const SPECIALS = /["\\]/g

function escaped(value: string): string {
  return SPECIAL.test(value) ? value.replace(SPECIALS, '\\$&') : value
}

/** For numbers, which need no quotes. */
export function numberArray(values: readonly (number | bigint | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : String(value))).join(',')}}`
}

/** For bytes, in the hex form; the cast is `::bytea[]`. */
export function bytesArray(values: readonly Uint8Array[]): string {
  let text = '{'
  for (let at = 0; at < values.length; at++) {
    const value = values[at] ?? EMPTY
    if (at > 0) text += ','
    text += `"\\\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}"`
  }
  return `${text}}`
}

const EMPTY = new Uint8Array(0)
