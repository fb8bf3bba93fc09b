import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { behind, refused } from '../transport/outcomes.ts'
import type { Transport } from '../transport/transport.ts'

import { chunks } from './chunks.ts'

/**
 * Sends any number, as many at once as the transport takes. A lost connection is a fault of what was under way. Behind a part that
 * left out a message of an ordering key, no later part has one of that key: it would be overtaken.
 */
export async function sendInParts(
  transport: Transport,
  queue: string,
  batch: readonly Envelope[],
  signal: AbortSignal,
): Promise<readonly Sent[]> {
  const outcomes: Sent[] = []
  const failed = new Map<string, Sent>()
  const failedBefore = ({ orderingKey }: Envelope): Sent | undefined =>
    orderingKey === undefined ? undefined : failed.get(orderingKey)
  for (const part of chunks(batch, transport.traits.limits.sendBatch)) {
    const free = part.filter((one) => failedBefore(one) === undefined)
    const answers = await sendPart(transport, queue, free, signal)
    const inTurn = answers.values()
    for (const one of part) {
      const before = failedBefore(one)
      outcomes.push(before === undefined ? next(inTurn) : behind(before))
    }
    for (const [i, { orderingKey }] of free.entries()) {
      const answer = answers[i]
      if (orderingKey !== undefined && answer?.ok === false) failed.set(orderingKey, answer)
    }
  }
  return outcomes
}

function next(answers: Iterator<Sent>): Sent {
  const { done, value } = answers.next()
  return done ? refused('unknown', { outcome: 'unknown' }) : value
}

async function sendPart(
  transport: Transport,
  queue: string,
  part: readonly Envelope[],
  signal: AbortSignal,
): Promise<readonly Sent[]> {
  if (part.length === 0) return []
  try {
    return await transport.send(queue, part, { signal })
  } catch (cause) {
    const fault = { ...transport.diagnose(cause), cause }
    return part.map(() => ({ ok: false, fault }))
  }
}
