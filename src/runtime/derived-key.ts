import { isId } from '../model/ids.ts'
import { unawaited } from '../model/maybe-promise.ts'
import { show } from '../model/problems.ts'
import { isShare, type Share, WEIGHT_MAX, WEIGHT_MIN } from '../transport/fair-share.ts'
import type { AnyQueue } from './queue.ts'

type KeyFunction = 'idempotencyKey' | 'orderingKey' | 'fairBy'

/**
 * The key that the queue's function gives for a payload; undefined when the queue has none, so that the message id is the
 * key. Anything but a text is refused: a misspelt field would otherwise mean one key less, and nobody would know.
 * @throws Error that says what the function gave, or threw (its `cause`)
 */
export function derivedKey(queue: AnyQueue, payload: unknown): string | undefined {
  if (queue.idempotencyKey === undefined) return undefined
  const key = called(queue, 'idempotencyKey', payload)
  if (typeof key === 'string' && key !== '') return key
  throw new Error(
    `idempotencyKey of queue "${queue.name}" gave ${show(key)}, expected a text that is not empty`,
  )
}

/**
 * The ordering key that the queue's function gives for a payload; undefined when the queue has none. A message without one
 * would run beside those that it must follow, so nothing else is taken.
 * @throws Error that says what the function gave, or threw (its `cause`)
 */
export function derivedOrderingKey(queue: AnyQueue, payload: unknown): string | undefined {
  if (queue.orderingKey === undefined) return undefined
  const key = called(queue, 'orderingKey', payload)
  if (typeof key === 'string' && isId(key)) return key
  throw new Error(
    `orderingKey of queue "${queue.name}" gave ${show(key)}, expected 1 to 255 printable ASCII characters without spaces`,
  )
}

/**
 * The share that the queue's functions give for a payload; empty when the queue shares nothing out. A message without a key would wait
 * beside the shares of all others, so nothing else is taken.
 * @throws Error that says what a function gave, or threw (its `cause`)
 */
export function derivedShare(queue: AnyQueue, payload: unknown): Share {
  if (queue.fairBy === undefined) return {}
  const fairKey = called(queue, 'fairBy', payload)
  if (typeof fairKey !== 'string' || !isId(fairKey)) {
    throw new Error(
      `fairBy of queue "${queue.name}" gave ${show(fairKey)}, expected 1 to 255 printable ASCII characters without spaces`,
    )
  }
  const fairWeight: unknown = queue.fairWeight === undefined ? 1 : weightOf(queue, fairKey)
  if (typeof fairWeight !== 'number' || !isShare({ fairKey, fairWeight })) {
    throw new Error(
      `fairWeight of queue "${queue.name}" gave ${show(fairWeight)} for "${fairKey}", expected a number from ${WEIGHT_MIN} to ${WEIGHT_MAX}`,
    )
  }
  return fairWeight === 1 ? { fairKey } : { fairKey, fairWeight }
}

function weightOf(queue: AnyQueue, fairKey: string): unknown {
  return guarded(queue, 'fairWeight', () => queue.fairWeight?.(fairKey))
}

function called(queue: AnyQueue, name: KeyFunction, payload: unknown): unknown {
  return guarded(queue, name, () => queue[name]?.(payload))
}

function guarded(queue: AnyQueue, name: string, call: () => unknown): unknown {
  try {
    const answer = call()
    // Refused by whoever asked: none of these may be a promise.
    unawaited(answer)
    return answer
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${name} of queue "${queue.name}" threw: ${why}`, { cause })
  }
}
