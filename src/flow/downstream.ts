import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'
import { show } from '../model/problems.ts'

/** Stores take names of so many characters. */
const NAME_MAX = 255

export interface NameGiver {
  readonly queue: string
  /** The function, as the user knows it. */
  readonly what: string
  readonly logger: Logger
}

/** What a queue's function names a payload by; undefined (said once) when it gives no name. */
export function nameGiver(
  { queue, what, logger }: NameGiver,
  give: (payload: unknown) => string,
): (payload: unknown) => string | undefined {
  let said = false
  const none = (why: string): undefined => {
    if (!said) {
      logger.warn(
        `queue "${queue}": its ${what} function ${why}; expected a text of 1 to ${NAME_MAX} characters; such messages run without it (said once)`,
        { queue },
      )
    }
    said = true
    return undefined
  }
  return (payload) => {
    try {
      const name: unknown = give(payload)
      const isName = typeof name === 'string' && name.length > 0 && name.length <= NAME_MAX
      return isName && !name.includes('\0') ? name : none(`gave ${show(name)}`)
    } catch (error) {
      return none(`threw (${messageOfError(error)})`)
    }
  }
}
