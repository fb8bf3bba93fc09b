import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'
import { show } from '../model/problems.ts'

/** Stores take names of so many characters. */
const NAME_MAX = 255

/** Names the downstream of a payload; undefined (said once) when the queue's function gives no name. */
export function downstreamOf(
  queue: { readonly name: string; downstream?(payload: unknown): string },
  logger: Logger,
): (payload: unknown) => string | undefined {
  let said = false
  const none = (what: string): undefined => {
    if (!said) {
      logger.warn(
        `queue "${queue.name}": its downstream function ${what}; expected a text of 1 to ${NAME_MAX} characters; such messages run without a breaker (said once)`,
        { queue: queue.name },
      )
    }
    said = true
    return undefined
  }
  return (payload) => {
    try {
      const name: unknown = queue.downstream?.(payload)
      const isName = typeof name === 'string' && name.length > 0 && name.length <= NAME_MAX
      return isName && !name.includes('\0') ? name : none(`gave ${show(name)}`)
    } catch (error) {
      return none(`threw (${messageOfError(error)})`)
    }
  }
}
