import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import type { Fault } from '../model/fault.ts'
import { failedKeys } from './failed-keys.ts'
import { asFaults } from './outcomes.ts'

/**
 * Sends a batch so that nothing of an ordering key is stored while something before it is not: first the first messages of all keys,
 * then the second ones, and so on. Behind one that failed nothing of its key is sent: it would be overtaken when it is sent again. For
 * backends that store the messages of a batch one by one; a batch with a key once is sent as it is.
 */
export async function inKeyOrder(
  batch: readonly Envelope[],
  send: (some: readonly Envelope[]) => Promise<readonly Sent[]>,
  diagnose: (error: unknown) => Fault,
): Promise<readonly Sent[]> {
  const steps = stepsOf(batch)
  if (steps.length <= 1) return send(batch)
  const outcomes: Sent[] = []
  const failed = failedKeys()
  for (const step of steps) {
    const going = step.filter(([at, message]) => {
      const untried = failed.outcomeOf(message)
      if (untried !== undefined) outcomes[at] = untried
      return untried === undefined
    })
    if (going.length === 0) continue
    const some = going.map(([, message]) => message)
    // What was stored before must not be forgotten with what is rejected now.
    const sending =
      step === steps[0] ? send(some) : send(some).catch(asFaults(diagnose, some.length))
    const answers = await sending
    for (const [i, [at, message]] of going.entries()) {
      const answer = answers[i]
      if (answer === undefined) continue
      outcomes[at] = answer
      failed.note(message, answer)
    }
  }
  return outcomes
}

type Placed = readonly [at: number, message: Envelope]

/** By how many of the same key are before them; messages without a key go at once. */
function stepsOf(batch: readonly Envelope[]): readonly (readonly Placed[])[] {
  const counts = new Map<string, number>()
  const steps: Placed[][] = []
  for (const [at, message] of batch.entries()) {
    const { orderingKey } = message
    const before = orderingKey === undefined ? 0 : (counts.get(orderingKey) ?? 0)
    if (orderingKey !== undefined) counts.set(orderingKey, before + 1)
    steps[before] ??= []
    steps[before].push([at, message])
  }
  return steps
}
