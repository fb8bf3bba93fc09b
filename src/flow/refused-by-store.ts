import { messageOfError } from '../model/describe-error.ts'
import { PermanentError } from '../model/errors.ts'

/**
 * For a message whose name the store does not take, see `isRefusedCall`: alone and for good, as one without a name. To wait for the store
 * would be to wait for ever.
 * @param what `slot (concurrencyLimit)`
 */
export function refusedByStore(queue: string, what: string, cause: unknown): PermanentError {
  return new PermanentError(
    `the store of queue "${queue}" takes no ${what} for this message (${messageOfError(cause)})`,
    { cause },
  )
}
