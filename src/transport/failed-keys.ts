import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { behind } from './outcomes.ts'

/** Ordering keys of a batch of which a message was not stored: what follows would be overtaken when that one is sent again. */
export interface FailedKeys {
  /** What becomes of a message that may not be sent any more; undefined when it may, as always without a key. */
  outcomeOf(message: Keyed): Sent | undefined
  note(message: Keyed, outcome: Sent): void
}

type Keyed = Pick<Envelope, 'orderingKey'>

export function failedKeys(): FailedKeys {
  const failed = new Map<string, Sent>()
  return {
    outcomeOf({ orderingKey }) {
      const before = orderingKey === undefined ? undefined : failed.get(orderingKey)
      return before && behind(before)
    },
    note({ orderingKey }, outcome) {
      if (orderingKey !== undefined && !outcome.ok) failed.set(orderingKey, outcome)
    },
  }
}
