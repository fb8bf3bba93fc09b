import { messageWithOptions } from './thrown-options.ts'

/** Options common to all errors of Millrace. */
export interface ErrorDetails {
  readonly cause?: unknown
  readonly retryable?: boolean
  /** Structured facts: queue, messageId, attempt, … Never a payload, never a secret. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/** Every code, once. docs/errors.md has a section for each. */
export type ErrorCode =
  | 'MILLRACE_INVALID_OPTIONS'
  | 'MILLRACE_UNKNOWN_QUEUE'
  | 'MILLRACE_INVALID_PAYLOAD'
  | 'MILLRACE_UNSERIALIZABLE_PAYLOAD'
  | 'MILLRACE_PAYLOAD_TOO_LARGE'
  | 'MILLRACE_IDEMPOTENCY_CONFLICT'
  | 'MILLRACE_QUEUE_FULL'
  | 'MILLRACE_OUTCOME_UNKNOWN'
  | 'MILLRACE_BATCH_PARTIAL'
  | 'MILLRACE_UNAVAILABLE'
  | 'MILLRACE_DENIED'
  | 'MILLRACE_BACKEND_FAULT'
  | 'MILLRACE_FOREIGN_TRANSACTION'
  | 'MILLRACE_INBOX_REQUIRED'
  | 'MILLRACE_TX_ONCE'
  | 'MILLRACE_TX_ASYNC'
  | 'MILLRACE_DUPLICATE'
  | 'MILLRACE_CONTEXT_CLOSED'
  | 'MILLRACE_LEASE_LOST'
  | 'MILLRACE_SLOT_LOST'
  | 'MILLRACE_HANDLER_TIMEOUT'
  | 'MILLRACE_SHUTTING_DOWN'
  | 'MILLRACE_WORKER_LOST'
  | 'MILLRACE_CLOSED'
  | 'MILLRACE_SCHEMA_OUTDATED'
  | 'MILLRACE_SCHEMA_TOO_NEW'
  | 'MILLRACE_MISSING_CLIENT'
  | 'MILLRACE_UNSUPPORTED_NODE'
  | 'MILLRACE_TRANSIENT'
  | 'MILLRACE_PERMANENT'
  | 'MILLRACE_THROTTLED'
  | 'MILLRACE_HTTP_STATUS'
  | 'MILLRACE_ADDRESS_REFUSED'
  | 'MILLRACE_CONFIG'
  | 'MILLRACE_REDRIVE_TOO_OLD'
  | 'MILLRACE_DISK_FULL'
  | 'MILLRACE_NOT_SETTLED'
  | 'MILLRACE_UNREADABLE_BATCH'
  | 'MILLRACE_REORDER_FULL'

/** Base of all errors of Millrace. Guard by `code` (two copies of a package happen), not by instanceof. */
export class MillraceError extends Error {
  readonly code: ErrorCode
  readonly retryable: boolean
  readonly fields: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = new.target.name
    this.code = code
    this.retryable = details.retryable ?? false
    this.fields = details.fields ?? {}
  }

  /** Where the code is explained. */
  get docs(): string {
    return `docs/errors.md#${this.code.toLowerCase()}`
  }

  toJSON(): Record<string, unknown> {
    return {
      ...this.fields,
      name: this.name,
      code: this.code,
      message: this.message,
      retryable: this.retryable,
      docs: this.docs,
    }
  }
}

/** True for an error of Millrace with this code, also from another copy of the package. */
export function hasCode<Code extends ErrorCode>(
  error: unknown,
  code: Code,
): error is MillraceError & { readonly code: Code } {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code
}

/** True for any error of Millrace, also from another copy of the package. */
export function isMillraceError(error: unknown): error is MillraceError {
  if (typeof error !== 'object' || error === null || !('code' in error)) return false
  return typeof error.code === 'string' && error.code.startsWith('MILLRACE_')
}

/** Options were wrong; `problems` has every one of them. */
export class OptionsError extends MillraceError {
  readonly problems: readonly string[]
  constructor(what: string, problems: readonly string[], fields: ErrorDetails['fields'] = {}) {
    super('MILLRACE_INVALID_OPTIONS', `${what}: ${problems.join('; ')}`, {
      fields: { ...fields, problems },
    })
    this.problems = problems
  }
}

/** The queue holds as many messages as its capacity allows. Nothing was stored. */
export class QueueFullError extends MillraceError {
  /** When to try again, in ms, from the measured drain rate. */
  readonly retryAfterMs: number
  /** @param priority where the queue is full for sends of a low one alone */
  constructor(queue: string, maxDepth: number, retryAfterMs: number, priority?: number) {
    const whom = priority === undefined ? '' : ` for priority ${priority}`
    super(
      'MILLRACE_QUEUE_FULL',
      `queue "${queue}" is full${whom}: ${maxDepth} messages wait or are in flight; try again in ${Math.ceil(retryAfterMs / 1000)} s`,
      { retryable: true, fields: { queue, maxDepth, retryAfterMs } },
    )
    this.retryAfterMs = retryAfterMs
  }
}

/** How many bytes a payload may have. */
export interface PayloadLimits {
  readonly bodyBytes: number
  /** There is a claim check, and what has more bytes than this cannot travel without it. */
  readonly inlineBytes?: number
}

/** The encoded payload is larger than the transport, or the blob store of its claim check, takes. Nothing was stored. */
export class PayloadTooLargeError extends MillraceError {
  constructor(queue: string, bytes: number, limits: PayloadLimits, index?: number) {
    const { maxBytes, whose, advice } = limitMet(bytes, limits)
    super(
      'MILLRACE_PAYLOAD_TOO_LARGE',
      `${payloadAt(index)} for queue "${queue}" has ${bytes} bytes, ${whose} takes ${maxBytes}; ${advice}`,
      { fields: { queue, bytes, maxBytes, ...(index === undefined ? {} : { index }) } },
    )
  }
}

/** Which limit it was, and what helps against that one. */
function limitMet(
  bytes: number,
  { bodyBytes, inlineBytes }: PayloadLimits,
): { readonly maxBytes: number; readonly whose: string; readonly advice: string } {
  const elsewhere = 'or keep the body elsewhere and send a reference'
  const inline = inlineBytes ?? bodyBytes
  const whose = 'the transport'
  if (bytes <= inline) {
    const advice =
      'the backend refused it all the same: its headers are too large beside it, or a limit of the server is lower'
    return { maxBytes: inline, whose, advice }
  }
  if (inlineBytes === undefined) {
    return { maxBytes: inline, whose, advice: `give createMillrace a claimCheck, ${elsewhere}` }
  }
  if (bytes <= bodyBytes) {
    const advice = `in a transaction that cannot wait for the blob store of the claimCheck the body goes in whole; send it without tx, ${elsewhere}`
    return { maxBytes: inline, whose, advice }
  }
  const advice = `raise the maxBytes of the blobs of your claimCheck, ${elsewhere}`
  if (bodyBytes <= inline) return { maxBytes: inline, whose, advice }
  return { maxBytes: bodyBytes, whose: 'the blob store of the claimCheck', advice }
}

/** Thrown by a handler: may succeed later; a counted retry. */
export class TransientError extends MillraceError {
  /** Replaces the backoff, capped at `retry.maxMs`. */
  readonly delayMs: number | undefined
  constructor(message: string, details: { cause?: unknown; delayMs?: number } = {}) {
    super('MILLRACE_TRANSIENT', messageWithOptions(message, details, 'delayMs'), {
      cause: details?.cause,
      retryable: true,
    })
    this.delayMs = details?.delayMs
  }
}

/** Thrown by a handler: will never succeed; to the dead letters at once. */
export class PermanentError extends MillraceError {
  constructor(message: string, details: { cause?: unknown } = {}) {
    super('MILLRACE_PERMANENT', messageWithOptions(message, details), { cause: details?.cause })
  }
}

/** Thrown by a handler: the other side asked to wait; no attempt is spent. */
export class ThrottledError extends MillraceError {
  /** Undefined: the other side did not say for how long. */
  readonly retryAfterMs: number | undefined
  constructor(message: string, details: { cause?: unknown; retryAfterMs?: number } = {}) {
    super('MILLRACE_THROTTLED', messageWithOptions(message, details, 'retryAfterMs'), {
      cause: details?.cause,
      retryable: true,
    })
    this.retryAfterMs = details?.retryAfterMs
  }
}

/** One thing that is wrong with a payload. */
export interface PayloadIssue {
  readonly message: string
  /** Where: `items[3].price`; empty for the payload itself. */
  readonly path: string
}

/** The payload does not fit the queue's schema. Nothing was stored. */
export class InvalidPayloadError extends MillraceError {
  /** At most 50. */
  readonly issues: readonly PayloadIssue[]
  /** Which payload of a batch; undefined for a single one. */
  readonly index: number | undefined
  constructor(
    queue: string,
    issues: readonly PayloadIssue[],
    index?: number,
    { what = 'does not fit its schema', cause }: InvalidPayloadDetails = {},
  ) {
    super(
      'MILLRACE_INVALID_PAYLOAD',
      `${payloadAt(index)} for queue "${queue}" ${what}: ${summary(issues)}`,
      { cause, fields: { queue, issues, ...(index === undefined ? {} : { index }) } },
    )
    this.issues = issues
    this.index = index
  }
}

export interface InvalidPayloadDetails {
  /** Default `does not fit its schema`. */
  readonly what?: string
  readonly cause?: unknown
}

function payloadAt(index: number | undefined): string {
  return index === undefined ? 'payload' : `payload ${index} of the batch`
}

const ISSUES_SHOWN = 3

function summary(issues: readonly PayloadIssue[]): string {
  const shown = issues
    .slice(0, ISSUES_SHOWN)
    .map(({ message, path }) => (path === '' ? message : `${path}: ${message}`))
  const left = issues.length - shown.length
  return left > 0 ? `${shown.join('; ')}; and ${left} more` : shown.join('; ')
}
