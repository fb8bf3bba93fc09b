import type { Logger } from '../model/logger.ts'
import { unawaited } from '../model/maybe-promise.ts'

/** A log line that cannot be written must not change what happens to a message, nor end the process. */
export function safeLogger(inner: Logger): Logger {
  const at =
    (level: keyof Logger): Logger[typeof level] =>
    (message, fields) => {
      try {
        // An async method is one, too.
        const answer: unknown = inner[level](message, fields)
        unawaited(answer)
      } catch {
        // Where should it be said? The logger is what failed.
      }
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
