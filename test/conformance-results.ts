import { appendFileSync } from 'node:fs'
import type { Result } from 'millrace/conformance'

/** For `conformance({ onResult })`: keeps each result for docs/guarantees.md, when `npm test` runs us. */
export function recordResult(result: Result): void {
  const file = process.env.MILLRACE_TEST_RESULTS
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(result)}\n`)
}
