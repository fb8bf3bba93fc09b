import { MillraceError } from './errors.ts'

/** For a call to a connection that is closed. @param what `the transport`, `the subscription`, `the inbox`, … */
export function closedError(what: string): MillraceError {
  return new MillraceError('MILLRACE_CLOSED', `${what} is closed; connect again`)
}
