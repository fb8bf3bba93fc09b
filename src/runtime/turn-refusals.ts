import { levelQueues, levelsProblem } from '../layers/levels.ts'
import type { Transport } from '../transport/transport.ts'
import { levelsOf } from './levels-of.ts'
import type { AnyQueue } from './queue.ts'

export interface TurnsOn {
  /** With all layers. */
  readonly transport: Pick<Transport, 'name' | 'traits'>
  /** Below all layers: what it lacks says why no layer could help. */
  readonly backend: Pick<Transport, 'traits'>
}

/** What queues that say whose turn it is ask of a transport that hands out in an order of its own. */
export function turnRefusals(on: TurnsOn, queues: readonly AnyQueue[]): readonly string[] {
  return queues.flatMap((queue) => {
    const found = [...levelRefusals(on, queue, queues), ...fairRefusals(on, queue)]
    return found.map((text) => `queue "${queue.name}": ${text}`)
  })
}

function levelRefusals(
  { transport, backend }: TurnsOn,
  queue: AnyQueue,
  queues: readonly AnyQueue[],
): readonly string[] {
  const { name, traits } = transport
  const { priorities, ageingMs, order } = queue
  const problem = traits.priorities > 1 ? undefined : levelsProblem(backend.traits)
  const found: string[] = []
  if (priorities !== undefined && problem !== undefined) {
    found.push(`priorities: ${name} ${problem}; leave it out, or ${ELSEWHERE}`)
  } else if (ageingMs !== undefined && levelsOf(queue, transport) <= 1) {
    found.push(
      problem === undefined
        ? 'ageingMs: the queue has no priorities that could age; leave it out, or say with priorities how many levels it has'
        : `ageingMs: ${name} knows no priorities that could age; leave it out, or ${ELSEWHERE}`,
    )
  }
  if (priorities === undefined || traits.prioritiesBy !== 'queues') return found
  if (order !== undefined) {
    found.push(
      `priorities: ${name} has a queue for each level, so a message of a higher one would overtake its key; leave out one of priorities and orderingKey, or ${ELSEWHERE}`,
    )
  }
  const places = levelQueues(queue.name, priorities).slice(1)
  for (const place of places.filter((one) => queues.some((other) => other.name === one))) {
    found.push(`priorities: a level of it is in ${place}, which is a queue too; rename one of them`)
  }
  return found
}

function fairRefusals(
  { transport: { name, traits } }: TurnsOn,
  { fairBy }: AnyQueue,
): readonly string[] {
  if (fairBy === undefined || traits.fairness !== undefined) return []
  return [
    `fairBy: ${name} hands out in its own order, whosever turn it is; use rateLimit.perKey to bound what one key may take, a queue for each tenant that is ` +
      `large, or ${ELSEWHERE}`,
  ]
}

const ELSEWHERE = 'use memory, SQLite, Postgres or Redis as the transport'
