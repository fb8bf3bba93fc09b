import { WHO_HALTS } from '../transport/halted-keys.ts'
import type { Transport } from '../transport/transport.ts'
import type { AnyQueue } from './queue.ts'

/**
 * What queues with an ordering key ask of a transport that cannot keep it, all of it at once: an order that is only hoped for
 * holds until there is load.
 */
export function orderRefusals(
  transport: Transport,
  queues: readonly AnyQueue[],
): readonly string[] {
  return queues.flatMap((queue) =>
    queue.order === undefined
      ? []
      : refusals(transport, queue.order).map((text) => `queue "${queue.name}": ${text}`),
  )
}

function refusals(
  transport: Transport,
  { onDead, delayed }: NonNullable<AnyQueue['order']>,
): readonly string[] {
  const { name } = transport
  const { traits, haltedKeys } = transport.ordered ?? transport
  if (traits.order === 'none') {
    return [`orderingKey: ${name} keeps no order by key; ${instead(name)}`]
  }
  const found: string[] = []
  if (onDead === 'halt-key' && haltedKeys === undefined) {
    found.push(
      `onDead: ${name} cannot hold back a key whose message died; use onDead: 'continue', or ${WHO_HALTS}`,
    )
  }
  if (delayed === 'wait' && (traits.delay === 'none' || traits.delayLeavesOrder === true)) {
    found.push(
      `delayed: ${name} cannot let a key wait for a delayed message; leave it out, or ${WHO_HALTS}`,
    )
  }
  return found
}

/** The nearest thing that does. */
function instead(name: string): string {
  if (name.startsWith('sqs')) return "use sqs({ kind: 'fifo' })"
  if (name.startsWith('kafka')) return "use kafka({ retry: 'hold' })"
  if (name.startsWith('nats')) return 'use nats({ lanes: 16 }), or as many lanes as suit you'
  if (name.startsWith('rabbitmq')) return "use queueType: 'quorum'"
  return `use ${WHO_HALTS}, rabbitmq(), nats({ lanes }), sqs({ kind: 'fifo' }), or kafka({ retry: 'hold' })`
}
