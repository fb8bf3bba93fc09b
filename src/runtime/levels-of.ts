import type { Transport } from '../transport/transport.ts'
import type { AnyQueue } from './queue.ts'

/** How many levels of priority a queue has on this transport; 1 means none. */
export function levelsOf(
  { priorities }: Pick<AnyQueue, 'priorities'>,
  { traits }: Pick<Transport, 'traits'>,
): number {
  if (priorities !== undefined) return Math.min(priorities, traits.priorities)
  return traits.prioritiesBy === 'queues' ? 1 : traits.priorities
}

/** The most that a queue of the app names; 1 when none does. */
export function mostLevels(queues: readonly AnyQueue[]): number {
  return Math.max(1, ...queues.map(({ priorities = 1 }) => priorities))
}
