/** JSON text whose numbers JavaScript would change without a word. The message does not quote the number, which may be a secret. */
export class InexactNumberError extends RangeError {
  override readonly name: string = 'InexactNumberError'
}

/** Most texts have neither: sixteen digits in a row (2^53 has as many), nor an exponent of three (1e308 is the largest). */
const SUSPECT = /\d{16}|\d[eE]\+?\d{3}/
/** Strings whole, so that digits in them are no numbers. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/**
 * The value of a JSON text that somebody else wrote, where a number that cannot be kept is an error instead of another number:
 * an integer that JavaScript writes with other digits (12345678901234567890), or one that is too large for it (1e999).
 * @throws SyntaxError, InexactNumberError
 */
export function parseExactJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!SUSPECT.test(text)) return value
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (token.startsWith('"') || isKept(token)) continue
    throw new InexactNumberError(
      `the number of ${token.length} characters at character ${index} cannot be kept: integers are exact up to 9007199254740991, and 1.8e308 is the largest number; send it as a string`,
    )
  }
  return value
}

function isKept(token: string): boolean {
  const number = Number(token)
  if (!Number.isFinite(number)) return false
  return !/^-?\d+$/.test(token) || Number.isSafeInteger(number) || String(number) === token
}
