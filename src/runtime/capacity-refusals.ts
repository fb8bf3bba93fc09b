import type { Transport } from '../transport/transport.ts'
import { levelsOf } from './levels-of.ts'
import type { AnyQueue } from './queue.ts'

/** What queues that shed when they are full, or refuse by priority, ask of a transport that cannot do it. */
export function capacityRefusals(
  transport: Pick<Transport, 'name' | 'shed' | 'traits'>,
  queues: readonly AnyQueue[],
): readonly string[] {
  return queues.flatMap((queue) => {
    const problem = problemOf(transport, queue)
    return problem === undefined ? [] : [`queue "${queue.name}": capacity.${problem}`]
  })
}

function problemOf(
  transport: Pick<Transport, 'name' | 'shed' | 'traits'>,
  queue: AnyQueue,
): string | undefined {
  const { name, shed, traits } = transport
  const { capacity } = queue
  if (capacity === 'unbounded') return undefined
  if (capacity.whenFull === 'shed' && shed === undefined) {
    return (
      `whenFull: ${name} cannot remove what waits; use "reject" (with a watermark it refuses low priorities first) or "wait", ` +
      'or memory, SQLite, Postgres or Redis as the transport'
    )
  }
  if (capacity.whenFull !== 'reject' || capacity.watermark === 1) return undefined
  if (traits.capacity === 'exact') {
    return `watermark: ${name} counts all priorities together; use whenFull "shed", which removes the lowest first`
  }
  if (levelsOf(queue, transport) > 1) return undefined
  return 'watermark: the queue has no levels of priority to refuse by; say with priorities how many it has, or leave the watermark out'
}
