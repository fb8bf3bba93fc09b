import type { Transport } from '../transport/transport.ts'
import type { AnyQueue } from './queue.ts'

/** What queues that shed when they are full ask of a transport that cannot remove what waits. */
export function capacityRefusals(
  { name, shed }: Transport,
  queues: readonly AnyQueue[],
): readonly string[] {
  if (shed !== undefined) return []
  return queues
    .filter(({ capacity }) => capacity !== 'unbounded' && capacity.whenFull === 'shed')
    .map(
      (queue) =>
        `queue "${queue.name}": capacity.whenFull: ${name} cannot remove what waits, and has no priorities to refuse by; use "reject" or ` +
        '"wait", or memory, SQLite, Postgres or Redis as the transport',
    )
}
