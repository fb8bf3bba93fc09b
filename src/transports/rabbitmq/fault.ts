import { MillraceError } from '../../model/errors.ts'
import type { Fault, FaultCode } from '../../model/fault.ts'
import { read } from '../../model/probe.ts'
import { ownFault } from '../../transport/own-errors.ts'

/** Reply codes of AMQP 0-9-1 (its XML, constants) and codes of Node that tell that nothing was done. */
const NOT_APPLIED: ReadonlyMap<unknown, FaultCode> = new Map<unknown, FaultCode>([
  [403, 'denied'],
  [404, 'notFound'],
  [405, 'denied'],
  [406, 'invalid'],
  [530, 'denied'],
  ['ECONNREFUSED', 'unavailable'],
  ['ENOTFOUND', 'unavailable'],
  ['EAI_AGAIN', 'unavailable'],
  ['EHOSTUNREACH', 'unavailable'],
  ['ENETUNREACH', 'unavailable'],
])

const RETRYABLE: ReadonlySet<FaultCode> = new Set<FaultCode>(['unavailable', 'throttled'])

/** Names the fault behind an error of amqplib or of ours. */
export function rabbitFault(error: unknown): Fault {
  const own = ownFault(error)
  if (own !== undefined) return own
  if (error instanceof MillraceError && error.code === 'MILLRACE_UNAVAILABLE') {
    const outcome = error.fields.outcome === 'unknown' ? 'unknown' : 'notApplied'
    return { code: 'unavailable', retryable: true, outcome, cause: error }
  }
  const known = NOT_APPLIED.get(read(error, 'code'))
  if (known !== undefined) {
    return { code: known, retryable: RETRYABLE.has(known), outcome: 'notApplied', cause: error }
  }
  if (read(error, 'name') === 'AbortError' || isGone(error)) {
    return { code: 'unavailable', retryable: true, outcome: 'unknown', cause: error }
  }
  return { code: 'unknown', retryable: false, outcome: 'unknown', cause: error }
}

/** amqplib has no codes for a channel or a connection that ended under a call. */
function isGone(error: unknown): boolean {
  if (typeof read(error, 'code') === 'string') {
    return /^(ECONNRESET|EPIPE|ETIMEDOUT|ECONNABORTED)$/.test(String(read(error, 'code')))
  }
  const message = read(error, 'message')
  return (
    typeof message === 'string' &&
    /channel (closed|ended|closing)|connection clos|ETIMEDOUT|heartbeat timeout|unexpected close/i.test(
      message,
    )
  )
}

/** For a call that ran into its limit or lost its channel: it may have happened. */
export function unknownOutcome(message: string): MillraceError {
  return new MillraceError('MILLRACE_UNAVAILABLE', message, {
    retryable: true,
    fields: { outcome: 'unknown' },
  })
}
