import { MillraceError } from '../../model/errors.ts'

export function closedError(what: string): MillraceError {
  return new MillraceError('MILLRACE_CLOSED', `${what} is closed; use it before close()`)
}
