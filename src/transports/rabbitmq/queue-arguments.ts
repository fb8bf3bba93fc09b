import type { Server } from './server.ts'

/** What a queue of ours is declared with. */
export function queueArguments(
  queueType: 'quorum' | 'classic',
  server: Server,
): Readonly<Record<string, unknown>> {
  if (queueType === 'classic') return { 'x-queue-type': 'classic' }
  return { 'x-queue-type': 'quorum', ...unlimited(server) }
}

/** Without it 4.x drops a message at its twentieth return. */
function unlimited({ limitsDeliveries }: Server): Readonly<Record<string, number>> {
  return limitsDeliveries ? { 'x-delivery-limit': -1 } : {}
}

/** Of a lane: one consumer has it at a time. */
export function laneArguments(server: Server): Readonly<Record<string, unknown>> {
  return { 'x-queue-type': 'quorum', 'x-single-active-consumer': true, ...unlimited(server) }
}

/** Keeps the number of lanes where the broker itself compares it: two who start at once with different numbers cannot both be let in. */
export function rosterArguments(lanes: number): Readonly<Record<string, unknown>> {
  return { 'x-queue-type': 'quorum', 'x-max-length': lanes, 'x-overflow': 'reject-publish' }
}
