import { appendFileSync } from 'node:fs'
import type { Result } from 'millrace/conformance'

const introduced = new Set<string>()

/** For `conformance({ onResult })`: keeps each result for docs/guarantees.md, when `npm test` runs us. */
export function recordResult({ about, ...result }: Result): void {
  const { backend } = result
  if (about !== undefined && !introduced.has(backend)) write({ backend, about })
  introduced.add(backend)
  write(result)
}

function write(line: object): void {
  const file = process.env.MILLRACE_TEST_RESULTS
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(line)}\n`)
}
