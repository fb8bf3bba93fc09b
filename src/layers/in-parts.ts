import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { failedKeys } from '../transport/failed-keys.ts'
import { nextOf } from '../transport/outcomes.ts'
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
  const failed = failedKeys()
  for (const part of chunks(batch, transport.traits.limits.sendBatch)) {
    const untried = part.map((one) => failed.outcomeOf(one))
    const free = part.filter((_, at) => untried[at] === undefined)
    const answers = (await sendPart(transport, queue, free, signal)).values()
    for (const [at, one] of part.entries()) {
      const outcome = untried[at] ?? nextOf(answers)
      outcomes.push(outcome)
      failed.note(one, outcome)
    }
  }
  return outcomes
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
