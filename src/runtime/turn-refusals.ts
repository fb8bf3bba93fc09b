import type { Transport } from '../transport/transport.ts'
import type { AnyQueue } from './queue.ts'

/** What queues that say whose turn it is ask of a transport that hands out in an order of its own. */
export function turnRefusals(
  { name, traits }: Pick<Transport, 'name' | 'traits'>,
  queues: readonly AnyQueue[],
): readonly string[] {
  if (traits.priorities > 1) return []
  return queues
    .filter(({ ageingMs }) => ageingMs !== undefined)
    .map(
      (queue) =>
        `queue "${queue.name}": ageingMs: ${name} knows no priorities that could age; leave it out, or use memory, SQLite or Postgres as the transport`,
    )
}
