import { messageOfError } from '../model/describe-error.ts'
import { InexactNumberError } from '../model/exact-json.ts'

/** What is wrong with JSON text that was typed or piped in; follows the name of the text. */
export function notTaken(error: unknown): string {
  const what = messageOfError(error)
  return error instanceof InexactNumberError ? `: ${what}` : ` is not JSON: ${what}`
}
