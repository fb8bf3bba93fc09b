import { MAKE_AGAIN } from '../model/backend-error.ts'
import type { Envelope } from '../model/envelope.ts'
import {
  hasCode,
  MillraceError,
  type PayloadLimits,
  PayloadTooLargeError,
  QueueFullError,
} from '../model/errors.ts'
import type { Fault } from '../model/fault.ts'
import type { AnyQueue } from './queue.ts'

/** What a fault means to a sender. */
export interface FaultContext {
  readonly queue: AnyQueue
  readonly messageId: string
  readonly idempotencyKey?: string
  readonly bytes: number
  readonly limits: PayloadLimits
  /** Asked only when the queue is full: it may ask the backend for its total. */
  readonly retryAfterMs: () => number
  readonly index?: number
}

/** The error that a user catches for a fault of the backend. */
export function faultError(fault: Fault, context: FaultContext): MillraceError {
  const { cause } = fault
  if (cause instanceof MillraceError && !isUnsure(fault)) return cause
  const fields = {
    queue: context.queue.name,
    messageId: context.messageId,
    ...(context.index === undefined ? {} : { index: context.index }),
  }
  if (fault.outcome === 'unknown') return outcomeUnknown(cause, fields)
  switch (fault.code) {
    case 'conflict':
      return conflict(fault, context, fields)
    case 'full':
      return new QueueFullError(
        context.queue.name,
        maxDepthOf(context.queue),
        context.retryAfterMs(),
      )
    case 'tooLarge':
      return new PayloadTooLargeError(
        context.queue.name,
        context.bytes,
        context.limits,
        context.index,
      )
    case 'held':
      return heldError(fields.queue, [{ id: context.messageId }], fields)
    case 'unavailable':
    case 'throttled':
      return new MillraceError(
        'MILLRACE_UNAVAILABLE',
        `queue "${fields.queue}": the backend did not take the message${because(cause)}; nothing was stored, try again`,
        { cause, retryable: true, fields },
      )
    case 'denied':
      return new MillraceError(
        'MILLRACE_DENIED',
        `queue "${fields.queue}": the backend refused the message${because(cause)}; nothing was stored, check the account's rights`,
        { cause, fields },
      )
    case 'notFound':
      return new MillraceError(
        'MILLRACE_BACKEND_FAULT',
        `queue "${fields.queue}" is not there any more: the backend knows none of its name${because(cause)}; nothing was stored; ${MAKE_AGAIN}`,
        { cause, fields },
      )
    default:
      return new MillraceError(
        'MILLRACE_BACKEND_FAULT',
        `queue "${fields.queue}": the backend answered "${fault.code}"${because(cause)}; nothing was stored`,
        { cause, retryable: fault.retryable, fields },
      )
  }
}

/** Whose transaction it is, a sender cannot know. */
export function heldError(
  queue: string,
  envelopes: readonly HeldMessage[],
  fields: Readonly<Record<string, unknown>> = { queue, messageId: envelopes[0]?.id },
): MillraceError {
  const [first, ...more] = envelopes
  const keys = more.length === 0 && first !== undefined ? keysOf(first) : 'a key of the batch'
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `queue "${queue}": ${keys} is held by a transaction that sent with it and is still open, and the send waited for its end in vain; nothing was ` +
      'stored, look for a transaction that was left open, then try again',
    { retryable: true, fields },
  )
}

type HeldMessage = Pick<Envelope, 'id' | 'orderingKey' | 'remember'>

function keysOf({ id, orderingKey, remember = [] }: HeldMessage): string {
  const keys = remember.map(({ kind, key }) => `${kind} key "${key}"`)
  if (orderingKey !== undefined) keys.push(`ordering key "${orderingKey}"`)
  return keys.length === 0 ? `id ${id}` : keys.join(' or ')
}

/** Its own error only says that the backend did not answer; the sender has to know that the message may be stored. */
function isUnsure({ outcome, cause }: Fault): boolean {
  return outcome === 'unknown' && hasCode(cause, 'MILLRACE_UNAVAILABLE')
}

function outcomeUnknown(
  cause: unknown,
  fields: { readonly queue: string; readonly messageId: string },
): MillraceError {
  return new MillraceError(
    'MILLRACE_OUTCOME_UNKNOWN',
    `queue "${fields.queue}": the backend went away before it confirmed message ${fields.messageId}${because(cause)}; ` +
      'it may be stored, so send again with the same id',
    { cause, retryable: true, fields },
  )
}

function conflict(
  fault: Fault,
  context: FaultContext,
  fields: Readonly<Record<string, unknown>>,
): MillraceError {
  const key = context.idempotencyKey ?? ''
  return new MillraceError(
    'MILLRACE_IDEMPOTENCY_CONFLICT',
    `queue "${context.queue.name}"${context.index === undefined ? '' : `, payload ${context.index} of the batch`}: idempotency key "${key}" was used for another payload` +
      `${fault.id ? ` (message ${fault.id})` : ''}; nothing was stored, use a new key for a new payload`,
    { fields: { ...fields, idempotencyKey: key, firstMessageId: fault.id } },
  )
}

function maxDepthOf(queue: AnyQueue): number {
  return queue.capacity === 'unbounded' ? Number.POSITIVE_INFINITY : queue.capacity.maxDepth
}

function because(cause: unknown): string {
  return cause instanceof Error && cause.message !== '' ? ` (${cause.message.slice(0, 200)})` : ''
}
