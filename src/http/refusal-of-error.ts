import { messageOfError } from '../model/describe-error.ts'
import type { PayloadIssue } from '../model/errors.ts'
import type { Logger } from '../model/logger.ts'
import { read, readInteger, readString } from '../model/probe.ts'
import { type Refusal, RequestRefused } from './http-error.ts'

/** A backend that is away is asked about again after this long. */
const AWAY_RETRY_AFTER_S = 5

/** Errors whose own message is meant for the sender. */
const senderFaults: ReadonlyMap<string, number> = new Map([
  ['MILLRACE_INVALID_PAYLOAD', 422],
  ['MILLRACE_UNSERIALIZABLE_PAYLOAD', 422],
  ['MILLRACE_PAYLOAD_TOO_LARGE', 413],
  ['MILLRACE_IDEMPOTENCY_CONFLICT', 409],
  ['MILLRACE_QUEUE_FULL', 429],
  ['MILLRACE_INVALID_OPTIONS', 400],
  ['MILLRACE_UNKNOWN_QUEUE', 404],
])

/** Errors of the backend: their messages name addresses and causes, so the sender gets a constant text. */
const backendFaults: ReadonlyMap<string, string> = new Map([
  ['MILLRACE_UNAVAILABLE', 'the backend is away and nothing was stored; try again'],
  [
    'MILLRACE_OUTCOME_UNKNOWN',
    'the backend did not confirm in time; the message may be stored: send it again with the same Idempotency-Key',
  ],
  ['MILLRACE_DENIED', 'the backend refused the message and nothing was stored'],
  ['MILLRACE_BACKEND_FAULT', 'the backend failed and nothing was stored'],
  ['MILLRACE_DISK_FULL', 'the backend has no space left and nothing was stored'],
  ['MILLRACE_SCHEMA_OUTDATED', 'the backend is being upgraded; try again'],
  ['MILLRACE_SCHEMA_TOO_NEW', 'the backend is being upgraded; try again'],
  ['MILLRACE_CLOSED', 'this process is closing; try again'],
  ['MILLRACE_SHUTTING_DOWN', 'this process is closing; try again'],
])

/** What the sender is told about an error; whatever is not his fault is logged. */
export function refusalOfError(error: unknown, logger: Logger): Refusal {
  if (error instanceof RequestRefused) return ownRefusal(error.refusal, logger)
  const code = readString(error, 'code') ?? ''
  const status = senderFaults.get(code)
  if (status !== undefined) return senderRefusal(status, code, error)
  const message = backendFaults.get(code)
  logger.error(`intake: ${messageOfError(error)}`, { code: code || undefined })
  if (message === undefined) {
    return {
      status: 500,
      code: 'INTERNAL',
      message: 'this request failed inside; see the log of the intake',
    }
  }
  return { status: 503, code, message, headers: { 'retry-after': String(AWAY_RETRY_AFTER_S) } }
}

/** One that is not the sender's fault is for who runs the server. */
function ownRefusal(refusal: Refusal, logger: Logger): Refusal {
  const { status, code, message } = refusal
  if (status >= 500) logger.error(`intake: ${message}`, { code })
  return refusal
}

function senderRefusal(status: number, code: string, error: unknown): Refusal {
  const issues = read(error, 'issues')
  const index = readInteger(error, 'index') ?? readInteger(read(error, 'fields'), 'index')
  const retryAfterMs = readInteger(error, 'retryAfterMs') ?? 0
  return {
    status,
    code,
    message: messageOfError(error),
    ...(Array.isArray(issues) ? { issues: issues as readonly PayloadIssue[] } : {}),
    ...(index === undefined ? {} : { index }),
    ...(status === 429
      ? { headers: { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1000))) } }
      : {}),
  }
}
