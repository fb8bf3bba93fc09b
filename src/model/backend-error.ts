import { isMillraceError, MillraceError } from './errors.ts'
import type { Fault } from './fault.ts'
import { redact } from './redact.ts'

/** What helps when somebody deleted a queue while the app runs. */
export const MAKE_AGAIN =
  'make it again (an app that starts makes what is missing), or correct its name'

export interface BackendCall {
  /** `queue "orders"`, `the inbox`: begins the message. */
  readonly where: string
  /** It only reads, so that nothing can have happened whatever became of the answer. */
  readonly reads: boolean
  readonly fields?: Readonly<Record<string, unknown>>
}

/** The error that a user catches when a client library threw. Ours stay as they are, but for one whose outcome is unknown. */
export function backendError(fault: Fault, call: BackendCall): unknown {
  const { cause } = fault
  const unsure = fault.outcome === 'unknown' && !call.reads
  if (isMillraceError(cause) && !(unsure && fault.code === 'unavailable')) return cause
  const because = cause instanceof Error && cause.message !== '' ? ` (${firstLine(cause)})` : ''
  const details = { cause, ...(call.fields === undefined ? {} : { fields: call.fields }) }
  if (fault.code === 'unavailable' && unsure) {
    return new MillraceError(
      'MILLRACE_OUTCOME_UNKNOWN',
      `${call.where}: the backend went away before it confirmed${because}; it may have happened, look and do it again`,
      { ...details, retryable: true },
    )
  }
  if (fault.code === 'unavailable' || fault.code === 'throttled') {
    return new MillraceError(
      'MILLRACE_UNAVAILABLE',
      `${call.where}: the backend did not answer${because}; try again`,
      { ...details, retryable: true },
    )
  }
  if (fault.code === 'denied') {
    return new MillraceError(
      'MILLRACE_DENIED',
      `${call.where}: the backend refused${because}; check the account's rights`,
      details,
    )
  }
  if (fault.code === 'notFound') {
    return new MillraceError(
      'MILLRACE_BACKEND_FAULT',
      `${call.where}: it is not there any more, the backend knows none of its name${because}; ${MAKE_AGAIN}`,
      details,
    )
  }
  return new MillraceError(
    'MILLRACE_BACKEND_FAULT',
    `${call.where}: the backend answered "${fault.code}"${because}`,
    { ...details, retryable: fault.retryable },
  )
}

function firstLine({ message }: Error): string {
  return redact((message.split('\n', 1)[0] ?? '').slice(0, 200))
}
