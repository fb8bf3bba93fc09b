import { type ErrorCode, MillraceError, OptionsError } from '../../model/errors.ts'
import { readString } from '../../model/probe.ts'
import { redact } from '../../model/redact.ts'

/** A call of SQS: its action without the prefix, and the queue's URL or name. */
export interface SqsCall {
  readonly action: string
  readonly queue: string | undefined
}

/** Where a rule's text has `$right`, `$queue`: what was asked for. */
const RULES: readonly (readonly [RegExp, ErrorCode, boolean, string])[] = [
  [
    /^(?:.*[.#])?AccessDenied(?:Exception)?$/,
    'MILLRACE_DENIED',
    false,
    'this account may not do $right on $queue; allow it (sqsPolicy of millrace/sqs makes the smallest policy that suffices)',
  ],
  [
    /^(?:.*[.#])?Kms(?:AccessDenied|Disabled|InvalidState|NotFound|OptInRequired)$/,
    'MILLRACE_DENIED',
    false,
    '$queue is encrypted, and its KMS key cannot be used by this account; it needs kms:GenerateDataKey to send and kms:Decrypt to receive',
  ],
  [
    /^(?:.*[.#])?(?:InvalidClientTokenId|UnrecognizedClientException|SignatureDoesNotMatch|InvalidSignatureException|InvalidSecurity|MissingAuthenticationToken)$/,
    'MILLRACE_DENIED',
    false,
    'AWS does not accept these credentials; check the key pair, or the profile or role that it comes from',
  ],
  [
    /^CredentialsProviderError$/,
    'MILLRACE_UNAVAILABLE',
    true,
    'the SDK found no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, run where a role is attached, or pass credentials',
  ],
]
const REGION_MISSING = 'Region is missing'
const SAID_MAX = 300

/** What a call was refused for, in one line with what to do; undefined for all other errors. */
export function sqsRefusal(error: unknown, { action, queue }: SqsCall): MillraceError | undefined {
  const said = redact((readString(error, 'message') ?? '').split('\n', 1)[0] ?? '')
  if (said === REGION_MISSING) {
    return new OptionsError('sqs', [NO_REGION])
  }
  const name = readString(error, 'name') ?? ''
  const rule = RULES.find(([names]) => names.test(name))
  if (rule === undefined) return undefined
  const [, code, retryable, text] = rule
  const where = queue === undefined ? 'the queue' : `"${queue.split('/').at(-1)}"`
  const meaning = text.replace('$right', rightFor(action)).replace('$queue', where)
  return refusal(code, retryable, error, `${meaning} (${name}: ${said.slice(0, SAID_MAX)})`)
}

const NO_REGION =
  'no region was given and the SDK found none; pass region, or set AWS_REGION or a profile that has one'

function refusal(code: ErrorCode, retryable: boolean, cause: unknown, text: string): MillraceError {
  return new MillraceError(code, `sqs: ${text}`, { cause, retryable, fields: { refused: true } })
}

/** Whether an error is one of these: nothing was done, and its cause is what the SDK threw. */
export function isSqsRefusal(error: unknown): error is MillraceError {
  return error instanceof MillraceError && error.fields.refused === true
}

/** IAM knows batches by the name of the single act. */
function rightFor(action: string): string {
  return `sqs:${action.replace(/Batch$/, '')}`
}
