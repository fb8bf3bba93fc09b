import type { Logger } from '../model/logger.ts'
import { PartialBatchError } from '../model/partial-batch-error.ts'
import type { AnyQueue } from '../runtime/queue.ts'
import type { SendOptions, SendResult } from '../runtime/send.ts'
import { DELAY_MAX_MS } from '../runtime/send-options.ts'
import { RequestRefused, refusalBody, refuse } from './http-error.ts'
import type { IntakeApp } from './intake-options.ts'
import { refusalOfError } from './refusal-of-error.ts'

interface BatchItem {
  readonly payload: unknown
  readonly idempotencyKey?: string
  readonly delayMs?: number
}

type Common = Pick<SendOptions, 'headers' | 'signal'>

export interface BatchAnswer {
  readonly status: 202 | 207
  readonly body: { readonly results: readonly unknown[] }
}

/**
 * With one delay for all (or none), a batch is stored whole or not at all where the backend can. Messages with different delays are sent one
 * by one, and each has its own result: 207 when some failed.
 */
export async function sendBatch(
  app: IntakeApp,
  queue: AnyQueue,
  body: unknown,
  common: Common,
  logger: Logger,
): Promise<BatchAnswer> {
  const items = itemsOf(body)
  const delayMs = items[0]?.delayMs
  if (items.every((item) => item.delayMs === delayMs)) {
    const sending = app.sendBatch(
      queue,
      items.map((item) => item.payload),
      {
        ...common,
        ...(delayMs === undefined ? {} : { delayMs }),
        idempotencyKey: (_payload, index) => items[index]?.idempotencyKey,
      },
    )
    return sending.then(
      (results) => ({ status: 202, body: { results: results.map(plainResult) } }),
      (error: unknown) => partialAnswer(error, logger),
    )
  }
  const ends = await Promise.allSettled(
    items.map(({ payload, ...own }) => app.send(queue, payload, { ...common, ...own })),
  )
  const results = ends.map((end) =>
    end.status === 'fulfilled'
      ? plainResult(end.value)
      : refusalBody(refusalOfError(end.reason, logger)),
  )
  return { status: ends.every((end) => end.status === 'fulfilled') ? 202 : 207, body: { results } }
}

/** Of a backend that stores one message at a time. */
function partialAnswer(error: unknown, logger: Logger): BatchAnswer {
  if (!(error instanceof PartialBatchError)) throw error
  const results = error.results.map((result) =>
    'error' in result ? refusalBody(refusalOfError(result.error, logger)) : plainResult(result),
  )
  return { status: 207, body: { results } }
}

export function plainResult({ id, duplicate }: SendResult): SendResult {
  return { id, duplicate }
}

/** Above any transport's own limit for one batch; those are answered with their own message. */
const BATCH_MAX = 10_000
const SHAPE =
  'expected { "messages": [{ "payload": …, "idempotencyKey"?: string, "delayMs"?: number }, …] }'
const KEYS: readonly string[] = ['payload', 'idempotencyKey', 'delayMs']

function itemsOf(body: unknown): readonly BatchItem[] {
  const messages =
    typeof body === 'object' && body !== null && 'messages' in body ? body.messages : undefined
  if (!Array.isArray(messages)) throw refuse(400, 'BAD_BATCH', SHAPE)
  const stranger = Object.keys(Object(body)).find((key) => key !== 'messages')
  if (stranger !== undefined) throw refuse(400, 'BAD_BATCH', unknownKey(stranger))
  if (messages.length === 0) {
    throw refuse(400, 'BAD_BATCH', 'messages: expected at least one message, got an empty list')
  }
  if (messages.length > BATCH_MAX) {
    throw refuse(400, 'BAD_BATCH', `expected at most ${BATCH_MAX} messages, got ${messages.length}`)
  }
  return messages.map(itemOf)
}

function itemOf(item: unknown, index: number): BatchItem {
  if (typeof item !== 'object' || item === null || !('payload' in item)) throw bad(index, SHAPE)
  const stranger = Object.keys(item).find((key) => !KEYS.includes(key))
  if (stranger !== undefined) throw bad(index, unknownKey(stranger))
  const { payload, idempotencyKey, delayMs } = item as Record<string, unknown>
  if (idempotencyKey !== undefined && typeof idempotencyKey !== 'string')
    throw bad(index, 'idempotencyKey: expected a string')
  if (delayMs !== undefined && !isDelay(delayMs))
    throw bad(index, `delayMs: expected a number from 0 to ${DELAY_MAX_MS}`)
  return {
    payload,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(delayMs === undefined ? {} : { delayMs }),
  }
}

function unknownKey(key: string): string {
  return `unknown key ${JSON.stringify(key.slice(0, 64))}; ${SHAPE}`
}

function isDelay(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= DELAY_MAX_MS
}

function bad(index: number, what: string): Error {
  const message = `messages[${index}]: ${what}`
  return new RequestRefused({ status: 400, code: 'BAD_BATCH', message, index })
}
