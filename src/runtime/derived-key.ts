import { show } from '../model/problems.ts'
import type { AnyQueue } from './queue.ts'

/**
 * The key that the queue's function gives for a payload; undefined when the queue has none, so that the message id is the
 * key. Anything but a text is refused: a misspelt field would otherwise mean one key less, and nobody would know.
 * @throws Error that says what the function gave, or threw (its `cause`)
 */
export function derivedKey(queue: AnyQueue, payload: unknown): string | undefined {
  if (queue.idempotencyKey === undefined) return undefined
  const key = called(queue, payload)
  if (typeof key === 'string' && key !== '') return key
  throw new Error(
    `idempotencyKey of queue "${queue.name}" gave ${show(key)}, expected a text that is not empty`,
  )
}

function called(queue: AnyQueue, payload: unknown): unknown {
  try {
    return queue.idempotencyKey?.(payload)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`idempotencyKey of queue "${queue.name}" threw: ${why}`, { cause })
  }
}
