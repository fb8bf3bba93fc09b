import type { Clock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { LogFields, Logger } from '../model/logger.ts'
import type { Call } from './command.ts'
import { oneLine, timeText } from './terminal-text.ts'

/** One line per event, for people or as JSON. */
export interface EventLog {
  say(event: string, text: string, fields?: LogFields): void
  /** What the runtime writes becomes events too. */
  readonly logger: Logger
}

export function eventLog({ out }: Call, clock: Clock): EventLog {
  const write = (event: string, text: string, fields: LogFields): void => {
    const at = timeText(clock.now())
    if (out.json) out.data({ at, event, message: text, ...plain(fields) })
    else out.line(`${at} ${oneLine(text, 2_000)}${because(fields)}`)
  }
  const level =
    (name: string) =>
    (text: string, fields: LogFields = {}) =>
      write(name, text, fields)
  return {
    say: (event, text, fields = {}) => write(event, text, fields),
    logger: {
      debug: out.verbose ? level('debug') : () => undefined,
      info: level('info'),
      warn: level('warn'),
      error: level('error'),
    },
  }
}

function because(fields: LogFields): string {
  const cause = fields['cause']
  return cause === undefined ? '' : ` (${oneLine(messageOfError(cause))})`
}

/** An error as JSON is an empty object. */
function plain(fields: LogFields): LogFields {
  return fields['cause'] === undefined
    ? fields
    : { ...fields, cause: messageOfError(fields['cause']) }
}
