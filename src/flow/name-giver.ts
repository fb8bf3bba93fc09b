import { messageOfError } from '../model/describe-error.ts'
import { PermanentError } from '../model/errors.ts'
import { isName, NAME_RULE } from '../model/kept-text.ts'
import { unawaited } from '../model/maybe-promise.ts'
import { show } from '../model/problems.ts'

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
      `${what} of queue "${queue}" ${why}; expected ${NAME_RULE}, for every payload`,
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
    if (isName(name)) return name
    unawaited(name)
    return refuse(`gave ${show(name)}`)
  }
}
