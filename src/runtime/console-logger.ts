import { messageOfError } from '../model/describe-error.ts'
import type { LogFields, Logger } from '../model/logger.ts'

/** The default: warnings and errors, one line each, on standard error. */
export function consoleLogger(): Logger {
  const write = (message: string, fields?: LogFields): void => {
    const cause: unknown = fields?.['cause']
    const why = cause === undefined ? '' : ` (${messageOfError(cause)})`
    process.stderr.write(`millrace: ${message}${why}`.replace(/\s*\n\s*/g, ' ').concat('\n'))
  }
  return { debug() {}, info() {}, warn: write, error: write }
}
