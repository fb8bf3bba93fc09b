import type { Transport } from '../transport/transport.ts'
import type { AnyQueue } from './queue.ts'

/** What queues that say whose turn it is ask of a transport that hands out in an order of its own. */
export function turnRefusals(
  { name, traits }: Pick<Transport, 'name' | 'traits'>,
  queues: readonly AnyQueue[],
): readonly string[] {
  return queues.flatMap((queue) => {
    const found: string[] = []
    if (queue.ageingMs !== undefined && traits.priorities <= 1) {
      found.push(
        `ageingMs: ${name} knows no priorities that could age; leave it out, or ${ELSEWHERE}`,
      )
    }
    if (queue.fairBy !== undefined && traits.fairness === undefined) {
      found.push(
        `fairBy: ${name} hands out in its own order, whosever turn it is; use rateLimit.perKey to bound what one key may take, a queue for each tenant that is ` +
          `large, or ${ELSEWHERE}`,
      )
    }
    return found.map((text) => `queue "${queue.name}": ${text}`)
  })
}

const ELSEWHERE = 'use memory, SQLite or Postgres as the transport'
