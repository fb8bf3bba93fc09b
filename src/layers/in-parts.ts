import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import type { Transport } from '../transport/transport.ts'

import { chunks } from './chunks.ts'

/** Sends any number, as many at once as the transport takes. A lost connection is a fault of what was under way. */
export async function sendInParts(
  transport: Transport,
  queue: string,
  batch: readonly Envelope[],
  signal: AbortSignal,
): Promise<readonly Sent[]> {
  const outcomes: Sent[] = []
  for (const part of chunks(batch, transport.traits.limits.sendBatch)) {
    outcomes.push(...(await sendPart(transport, queue, part, signal)))
  }
  return outcomes
}

async function sendPart(
  transport: Transport,
  queue: string,
  part: readonly Envelope[],
  signal: AbortSignal,
): Promise<readonly Sent[]> {
  try {
    return await transport.send(queue, part, { signal })
  } catch (cause) {
    const fault = { ...transport.diagnose(cause), cause }
    return part.map(() => ({ ok: false, fault }))
  }
}
