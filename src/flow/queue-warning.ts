import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'

/** Says in the log what a queue has to do without, and what was thrown. */
export function queueWarning({
  queue,
  logger,
}: {
  readonly queue: string
  readonly logger: Logger
}): (what: string, error: unknown) => void {
  return (what, error) =>
    logger.warn(`queue "${queue}": ${what} (${messageOfError(error)})`, { queue })
}
