import type { Classification } from '../model/classify.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'
import { isThenable, unawaited } from '../model/maybe-promise.ts'
import { show } from '../model/problems.ts'

/** Whether a failure is the downstream's. */
export type IsFailure = (failure: Failure) => boolean

export type Failure = Pick<Classification, 'errorClass' | 'code'>

/** The default. A permanent error is the payload's, and who says "later" is well. */
export function isTransient({ errorClass }: Failure): boolean {
  return errorClass === 'transient'
}

export interface FailureJudgeOptions {
  readonly queue: string
  /** The user's. */
  readonly isFailure: (failure: Failure) => unknown
  readonly logger: Logger
}

/**
 * Asks the user's function. Where it throws, or answers with no boolean, the default decides, and the log says so once for each of the two:
 * a message is settled whatever a breaker cannot count.
 */
export function failureJudge({ queue, isFailure, logger }: FailureJudgeOptions): IsFailure {
  const said = new Set<'threw' | 'gave'>()
  const byDefault = (failure: Failure, how: 'threw' | 'gave', what: string): boolean => {
    if (!said.has(how)) {
      said.add(how)
      logger.warn(
        `queue "${queue}": its breaker.isFailure ${how} ${what} and is ignored, the default decides (transient failures are the downstream's); expected true or false (said once)`,
        { queue },
      )
    }
    return isTransient(failure)
  }
  return (failure) => {
    let answer: unknown
    try {
      answer = isFailure({ ...failure })
    } catch (error) {
      return byDefault(failure, 'threw', `(${messageOfError(error)})`)
    }
    if (typeof answer === 'boolean') return answer
    unawaited(answer)
    const what = isThenable(answer) ? 'a promise (it must answer at once)' : show(answer)
    return byDefault(failure, 'gave', what)
  }
}
