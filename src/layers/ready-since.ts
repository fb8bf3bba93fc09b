import type { Delivery } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'

/** What a message was told to wait for before it was ready, in ms; it is ours, and nobody above sees it. */
export const DELAYED_HEADER = 'millrace-delayed'

/** A delay travels as a duration beside the message: the broker tells when it was sent, and not when it fell due. */
export function withDelay(envelope: Envelope, now: number): Envelope {
  const { delayMs = 0, readyAt, headers } = envelope
  const waitMs = readyAt === undefined ? delayMs : readyAt - now
  if (waitMs <= 0) return envelope
  return { ...envelope, headers: { ...headers, [DELAYED_HEADER]: String(Math.ceil(waitMs)) } }
}

export function withoutDelay(envelope: Envelope): Envelope {
  if (envelope.headers[DELAYED_HEADER] === undefined) return envelope
  const { [DELAYED_HEADER]: _, ...headers } = envelope.headers
  return { ...envelope, headers }
}

/**
 * Epoch ms since when a message is ready, as far as can be told: since it was sent and its delay was over, and not before it
 * failed last.
 */
export function readySince({ envelope, history, sentAt }: Delivery): number {
  const delayMs = Number(envelope.headers[DELAYED_HEADER] ?? 0)
  const dueAt = sentAt + (Number.isFinite(delayMs) ? Math.max(0, delayMs) : 0)
  return Math.max(dueAt, history.records.at(-1)?.at ?? 0)
}
