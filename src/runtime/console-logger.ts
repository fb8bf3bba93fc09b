import type { LogFields, Logger } from '../model/logger.ts'

/** The default: warnings and errors, one line each, on standard error. */
export function consoleLogger(): Logger {
  const write = (message: string, fields?: LogFields): void => {
    const cause: unknown = fields?.['cause']
    const why = cause instanceof Error ? ` (${cause.message})` : ''
    process.stderr.write(`millrace: ${message}${why}\n`)
  }
  return { debug() {}, info() {}, warn: write, error: write }
}
