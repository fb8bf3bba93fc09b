import { messageOfError } from '../model/describe-error.ts'
import { PermanentError } from '../model/errors.ts'
import { show } from '../model/problems.ts'

/** Stores take names of so many characters. */
const NAME_MAX = 255

export interface NameGiver {
  readonly queue: string
  /** The function, as the user knows it. */
  readonly what: string
}

/**
 * What a queue's function names a payload by. A message without a name would pass the limit of all others, so it does not run: it fails for
 * good, and is redriven once the function is right.
 */
export function nameGiver(
  { queue, what }: NameGiver,
  give: (payload: unknown) => string,
): (payload: unknown) => string {
  const refuse = (why: string, cause?: unknown): never => {
    throw new PermanentError(
      `${what} of queue "${queue}" ${why}; expected a text of 1 to ${NAME_MAX} characters for every payload`,
      { cause },
    )
  }
  const called = (payload: unknown): unknown => {
    try {
      return give(payload)
    } catch (error) {
      return refuse(`threw (${messageOfError(error)})`, error)
    }
  }
  return (payload) => {
    const name = called(payload)
    const isName = typeof name === 'string' && name.length > 0 && name.length <= NAME_MAX
    return isName && !name.includes('\0') ? name : refuse(`gave ${show(name)}`)
  }
}
