import { isId } from '../model/ids.ts'
import { show } from '../model/problems.ts'
import type { AnyQueue } from './queue.ts'

type KeyFunction = 'idempotencyKey' | 'orderingKey'

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

function called(queue: AnyQueue, name: KeyFunction, payload: unknown): unknown {
  try {
    return queue[name]?.(payload)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${name} of queue "${queue.name}" threw: ${why}`, { cause })
  }
}
