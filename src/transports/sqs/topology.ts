import { hasCode, OptionsError } from '../../model/errors.ts'
import type { QueueSpec } from '../../transport/transport.ts'
import { sqsFault } from './faults.ts'
import { isQueueName, type Place } from './places.ts'
import type { Store } from './store.ts'
import { MESSAGE_MAX_BYTES } from './traits.ts'

export type TopologyMode = 'create' | 'check' | 'none'

/** Fourteen days, the longest that SQS keeps anything. */
const RETENTION_S = 1_209_600

/**
 * Looks at the queues, makes what is missing where that was asked for, and changes nothing that is there.
 * @throws MILLRACE_INVALID_OPTIONS with everything that is wrong with all queues
 */
export async function ensure(
  store: Store,
  mode: TopologyMode,
  queues: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<void> {
  const problems = await refusalsOf(store, mode, queues, signal)
  if (problems.length > 0) throw new OptionsError('sqs', problems)
}

/** What `ensure` would refuse of what is there; nothing is made. */
export function topologyDifferences(
  store: Store,
  mode: TopologyMode,
  queues: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  return refusalsOf(store, mode === 'create' ? 'look' : mode, queues, signal)
}

/** `look`: what is missing would be made, but not now. */
type Mode = TopologyMode | 'look'

async function refusalsOf(
  store: Store,
  mode: Mode,
  queues: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (mode === 'none') return []
  const specs = [...new Map(queues.map((spec) => [spec.name, spec])).values()]
  const found = await Promise.all(specs.map((spec) => ensureOne(store, mode, spec, signal)))
  return found.flat()
}

async function ensureOne(
  store: Store,
  mode: Mode,
  spec: QueueSpec,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { places, api } = store
  const physical = places.physicalName(spec.name)
  if (!isQueueName(physical)) {
    return [
      `queue "${spec.name}": SQS takes letters, digits, - and _, at most 80, and not ${JSON.stringify(physical)}; give its physical name in the option queues`,
    ]
  }
  const place = await placeOf(store, mode, spec.name, signal)
  if (place === undefined && mode === 'look') return []
  if (place === undefined) {
    return [`queue "${spec.name}": there is no ${physical} at SQS, and topology is "check"`]
  }
  const found = await api.attributes({ QueueUrl: place.url, AttributeNames: ['All'] }, signal)
  const messageBytes = Number(found.MaximumMessageSize ?? MESSAGE_MAX_BYTES)
  places.learn(spec.name, { url: place.url, messageBytes })
  return differences(store, spec, found)
}

async function placeOf(
  { places, api, kind }: Store,
  mode: Mode,
  queue: string,
  signal: AbortSignal,
): Promise<Place | undefined> {
  try {
    return await places.of(queue)
  } catch (error) {
    if (!hasCode(error, 'MILLRACE_UNKNOWN_QUEUE')) throw error
    if (mode !== 'create') return undefined
  }
  const input = {
    QueueName: places.physicalName(queue),
    Attributes: {
      MessageRetentionPeriod: String(RETENTION_S),
      ...(kind === 'fifo' ? { FifoQueue: 'true' } : {}),
    },
  }
  const url = await api.createQueue(input, signal).catch(async (error: unknown) => {
    // Another process was faster, with a setting of its own.
    if (sqsFault(error).code === 'denied') throw error
    return (await places.of(queue)).url
  })
  return { url, messageBytes: MESSAGE_MAX_BYTES }
}

/** Counted by SQS and not by us: deploys, lost leases, throttled attempts. */
const UNCOUNTED_ALLOWANCE = 10

/** What is set so that messages would be lost or taken away, a sentence each. */
function differences(
  { kind }: Store,
  { name, attempts, horizonMs }: QueueSpec,
  found: Readonly<Record<string, string>>,
): readonly string[] {
  const problems: string[] = []
  const isFifo = found.FifoQueue === 'true'
  if (isFifo !== (kind === 'fifo')) {
    problems.push(
      `queue "${name}" is ${isFifo ? 'a FIFO' : 'a standard'} queue; use sqs({ kind: "${isFifo ? 'fifo' : 'standard'}" }) for it`,
    )
  }
  const receives = maxReceiveCount(found.RedrivePolicy)
  const needed = (attempts ?? 1) + UNCOUNTED_ALLOWANCE
  if (receives !== undefined && receives < needed) {
    problems.push(
      `queue "${name}" has a redrive policy with maxReceiveCount ${receives}, and SQS would take messages away before their ${attempts ?? 1} attempts are over; raise it to ${needed} or more, or remove the policy`,
    )
  }
  const retentionMs = Number(found.MessageRetentionPeriod ?? RETENTION_S) * 1_000
  if (horizonMs !== undefined && retentionMs < horizonMs) {
    problems.push(
      `queue "${name}" keeps messages for ${retentionMs / 1_000} s, and all retries may take ${Math.ceil(horizonMs / 1_000)} s; raise MessageRetentionPeriod`,
    )
  }
  return problems
}

/** Undefined without a policy. Some servers write the number as a text. */
function maxReceiveCount(policy: string | undefined): number | undefined {
  if (policy === undefined || policy === '') return undefined
  const count = /"maxReceiveCount"\s*:\s*"?(\d+)/.exec(policy)?.[1]
  return count === undefined ? undefined : Number(count)
}
