import type { Transport } from '../transport/transport.ts'
import type { AnyQueue } from './queue.ts'

/** The app's transport as this queue sees it: where queues in order have other traits, those. */
export function transportOf(transport: Transport, { order }: Pick<AnyQueue, 'order'>): Transport {
  const { ordered } = transport
  if (ordered === undefined || order === undefined) return transport
  return { ...transport, traits: ordered.traits }
}
