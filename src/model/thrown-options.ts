import { nearest } from './nearest.ts'
import { isObject } from './probe.ts'

/**
 * The message of an error that a handler throws, with what is wrong with its options. Constructing it must not throw: that would be another
 * error, of another class. So the mistake is read where the failed attempt is read.
 */
export function messageWithOptions(
  message: string,
  options: unknown,
  waitOption?: 'delayMs' | 'retryAfterMs',
): string {
  const wrong = problemsOf(options, waitOption)
  return wrong.length === 0 ? message : `${message} (${wrong.join('; ')})`
}

function problemsOf(options: unknown, waitOption: string | undefined): readonly string[] {
  const known = waitOption === undefined ? ['cause'] : ['cause', waitOption]
  if (options === undefined) return []
  if (!isObject(options) || options instanceof Error) {
    return [`options: expected { ${known.join(', ')} }, ignored`]
  }
  return Object.entries(options).flatMap(([key, value]) => {
    if (key === waitOption) return waitProblem(key, value)
    return known.includes(key) ? [] : [strangerProblem(key, known)]
  })
}

function strangerProblem(key: string, known: readonly string[]): string {
  const near = nearest(key, known) ?? known.find((one) => one.startsWith(key))
  const hint = near === undefined ? `expected ${known.join(', ')}` : `did you mean "${near}"?`
  return `unknown option ${JSON.stringify(key.slice(0, 64))}, ignored: ${hint}`
}

function waitProblem(key: string, value: unknown): readonly string[] {
  if (value === undefined) return []
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return []
  const got = typeof value === 'number' ? String(value) : typeof value
  return [`${key}: expected a number of ms from 0, got ${got}, ignored`]
}
