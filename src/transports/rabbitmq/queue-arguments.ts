import type { Server } from './server.ts'

/** What a queue of ours is declared with. */
export function queueArguments(
  queueType: 'quorum' | 'classic',
  server: Server,
): Readonly<Record<string, unknown>> {
  if (queueType === 'classic') return { 'x-queue-type': 'classic' }
  // Without it 4.x drops a message at its twentieth return.
  const limit = server.limitsDeliveries ? { 'x-delivery-limit': -1 } : {}
  return { 'x-queue-type': 'quorum', ...limit }
}
