import type { BatchResultErrorEntry } from '@aws-sdk/client-sqs'
import { hasCode } from '../../model/errors.ts'
import type { Fault, FaultCode } from '../../model/fault.ts'
import { read, readInteger, readString } from '../../model/probe.ts'
import { ownFault } from '../../transport/own-errors.ts'
import { isSqsRefusal } from './refusal.ts'

/** Error codes of SQS and of all AWS services, without the prefixes that older protocols put before them. */
const CODES: readonly (readonly [FaultCode, boolean, readonly string[]])[] = [
  ['notFound', false, ['QueueDoesNotExist', 'NonExistentQueue', 'QueueDeletedRecently']],
  [
    'lost',
    false,
    ['ReceiptHandleIsInvalid', 'MessageNotInflight', 'InvalidReceiptHandle', 'MessageNotFound'],
  ],
  [
    'throttled',
    true,
    [
      'RequestThrottled',
      'ThrottlingException',
      'Throttling',
      'ThrottledException',
      'TooManyRequestsException',
      'RequestLimitExceeded',
      'KmsThrottled',
      'OverLimit',
    ],
  ],
  [
    'denied',
    false,
    [
      'AccessDenied',
      'AccessDeniedException',
      'InvalidClientTokenId',
      'UnrecognizedClientException',
      'SignatureDoesNotMatch',
      'InvalidSecurity',
      'InvalidSignatureException',
      'MissingAuthenticationToken',
      'OptInRequired',
      'KmsAccessDenied',
      'KmsDisabled',
      'KmsInvalidState',
      'KmsNotFound',
      'KmsOptInRequired',
    ],
  ],
  // Renewed without a change by anybody: credentials by their provider, the clock's offset by the SDK.
  [
    'unavailable',
    true,
    [
      'ExpiredToken',
      'ExpiredTokenException',
      'RequestExpired',
      'RequestTimeTooSkewed',
      'RequestInTheFuture',
      'CredentialsProviderError',
    ],
  ],
  ['tooLarge', false, ['BatchRequestTooLong', 'MessageTooLong']],
  [
    'invalid',
    false,
    [
      'InvalidParameterValue',
      'InvalidParameterValueException',
      'InvalidMessageContents',
      'InvalidAttributeValue',
      'InvalidAttributeName',
      'MissingParameter',
      'UnsupportedOperation',
      'InvalidAddress',
      'ValidationError',
    ],
  ],
]

const byCode: ReadonlyMap<string, Pick<Fault, 'code' | 'retryable'>> = new Map(
  CODES.flatMap(([code, retryable, names]) => names.map((name) => [name, { code, retryable }])),
)

/** The request has not left this machine. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])
/** It may have arrived. */
const CUT: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ECONNABORTED',
  'TimeoutError',
  'AbortError',
  'NetworkingError',
])

/** Names the fault behind an error of the SDK or of ours. Never throws. */
export function sqsFault(error: unknown): Fault {
  const own = ownFault(error)
  if (own !== undefined) return own
  if (hasCode(error, 'MILLRACE_INVALID_OPTIONS')) {
    return { code: 'invalid', retryable: false, outcome: 'notApplied', cause: error }
  }
  if (isSqsRefusal(error)) return { ...sqsFault(error.cause), cause: error, outcome: 'notApplied' }
  if (hasCode(error, 'MILLRACE_UNAVAILABLE')) return away(error, 'unknown')
  const name = codeName(readString(error, 'name') ?? '')
  const known = byCode.get(name) ?? byCode.get(codeName(readString(error, 'Code') ?? ''))
  if (known !== undefined) return faultFor(known, name, readString(error, 'message') ?? '', error)
  const code = readString(error, 'code') ?? ''
  if (NOT_SENT.has(code)) return away(error, 'notApplied')
  if (CUT.has(code) || CUT.has(name)) return away(error, 'unknown')
  return byStatus(error)
}

/** Of one entry of a batch that failed while others did not. */
export function entryFault(entry: BatchResultErrorEntry): Fault {
  const { Code = '', Message = '', SenderFault = false } = entry
  const cause = Object.assign(new Error(`${Code}: ${Message}`), { name: Code })
  const name = codeName(Code)
  const known = byCode.get(name)
  if (known !== undefined) return faultFor(known, name, Message, cause)
  if (SenderFault) return { code: 'invalid', retryable: false, outcome: 'notApplied', cause }
  return { code: 'unavailable', retryable: true, outcome: 'unknown', cause }
}

/** SQS says in words alone that a receipt handle is spent: "… Reason: The receipt handle has expired." */
const SPENT = /receipt ?handle|not available for visibility|total visibilitytimeout/i

function faultFor(
  known: Pick<Fault, 'code' | 'retryable'>,
  name: string,
  message: string,
  cause: unknown,
): Fault {
  const fault = { ...known, outcome: 'notApplied', cause } as const
  const spent = name.startsWith('InvalidParameterValue') && SPENT.test(message)
  return spent ? { ...fault, code: 'lost' } : fault
}

function byStatus(error: unknown): Fault {
  const status = readInteger(read(error, '$metadata'), 'httpStatusCode') ?? 0
  if (status === 429) {
    return { code: 'throttled', retryable: true, outcome: 'notApplied', cause: error }
  }
  if (status >= 500) return away(error, status === 503 ? 'notApplied' : 'unknown')
  if (status === 403)
    return { code: 'denied', retryable: false, outcome: 'notApplied', cause: error }
  if (status >= 400)
    return { code: 'invalid', retryable: false, outcome: 'notApplied', cause: error }
  return { code: 'unknown', retryable: false, outcome: 'unknown', cause: error }
}

function away(cause: unknown, outcome: Fault['outcome']): Fault {
  return { code: 'unavailable', retryable: true, outcome, cause }
}

/** `AWS.SimpleQueueService.NonExistentQueue`, `com.amazonaws.sqs#QueueDoesNotExist` */
function codeName(text: string): string {
  return text.slice(Math.max(text.lastIndexOf('.'), text.lastIndexOf('#')) + 1)
}
