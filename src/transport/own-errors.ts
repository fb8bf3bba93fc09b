import { hasCode, MillraceError } from '../model/errors.ts'
import type { Fault } from '../model/fault.ts'

/** A transport is asked only for queues that were ensured; what it throws when one is not there. */
export function unknownQueueError(name: string): MillraceError {
  return new MillraceError(
    'MILLRACE_UNKNOWN_QUEUE',
    `queue "${name}" does not exist; ensure it first (createMillrace does this for its queues)`,
    { fields: { queue: name } },
  )
}

/** What the errors mean that a transport throws itself, for its `diagnose`. Undefined for those of its client. */
export function ownFault(error: unknown): Fault | undefined {
  const fault = { retryable: false, outcome: 'notApplied', cause: error } as const
  if (hasCode(error, 'MILLRACE_CLOSED')) return { ...fault, code: 'unavailable' }
  if (hasCode(error, 'MILLRACE_UNKNOWN_QUEUE')) return { ...fault, code: 'notFound' }
  return undefined
}
