import type { Classification } from './classify.ts'
import { classifyStatus } from './classify-http.ts'
import { type CodeRule, codeRulesAsTable, indexRules, type Rule } from './classify-rule.ts'
import { read, readInteger, readString } from './probe.ts'
import { toldDelayMs } from './retry-after.ts'

/** Names that the SDK's own retry logic treats the same way (AWS SDK for JavaScript v3, and `code` in v2). */
const aws: readonly CodeRule[] = [
  {
    codes: [
      'ThrottlingException',
      'Throttling',
      'ThrottledException',
      'RequestThrottled',
      'RequestThrottledException',
      'TooManyRequestsException',
      'RequestLimitExceeded',
      'BandwidthLimitExceeded',
      'LimitExceededException',
      'ProvisionedThroughputExceededException',
      'PriorRequestNotComplete',
      'EC2ThrottledException',
      'SlowDown',
      'TransactionInProgressException',
    ],
    errorClass: 'throttled',
    why: 'the service asks to slow down',
  },
  {
    codes: [
      'ExpiredToken',
      'ExpiredTokenException',
      'RequestExpired',
      'RequestTimeTooSkewed',
      'RequestInTheFuture',
      'CredentialsProviderError',
    ],
    errorClass: 'transient',
    why: 'credentials or the clock of this worker; both are renewed without the message',
  },
  {
    codes: [
      'RequestTimeout',
      'RequestTimeoutException',
      'InternalError',
      'InternalServerError',
      'ServiceUnavailable',
    ],
    errorClass: 'transient',
    why: 'the service failed, the request may be right',
  },
]

const byAwsName = indexRules(aws)

export const awsTable: readonly Rule[] = [
  ...codeRulesAsTable('AWS SDK', aws),
  {
    family: 'AWS SDK',
    match: '$retryable.throttling',
    errorClass: 'throttled',
    why: 'the SDK says that the service throttles',
  },
  {
    family: 'AWS SDK',
    match: '$retryable',
    errorClass: 'transient',
    why: 'the SDK says that a retry may help',
  },
]

export function classifyAws(error: unknown, now: number): Classification | undefined {
  const name = readString(error, 'name')
  const key = name !== undefined && byAwsName.has(name) ? name : readString(error, 'code')
  const rule = key === undefined ? undefined : byAwsName.get(key)
  const headers = read(read(error, '$response'), 'headers')
  if (key !== undefined && rule)
    return withDelay({ errorClass: rule.errorClass, code: key, why: rule.why }, headers, now)
  const metadata = read(error, '$metadata')
  if (typeof metadata !== 'object' || metadata === null) return undefined
  const code = name ?? 'AWS'
  const retryable = read(error, '$retryable')
  if (read(retryable, 'throttling') === true) {
    return withDelay(
      { errorClass: 'throttled', code, why: 'the SDK says that the service throttles' },
      headers,
      now,
    )
  }
  if (retryable) return { errorClass: 'transient', code, why: 'the SDK says that a retry may help' }
  const byStatus = classifyStatus(readInteger(metadata, 'httpStatusCode') ?? 0, headers, now)
  return byStatus && { ...byStatus, code }
}

function withDelay(found: Classification, headers: unknown, now: number): Classification {
  const delayMs = found.errorClass === 'throttled' ? toldDelayMs(headers, now) : undefined
  return delayMs === undefined ? found : { ...found, delayMs }
}
