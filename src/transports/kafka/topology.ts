import { pause } from '../../model/clock.ts'
import { OptionsError } from '../../model/errors.ts'
import type { QueueSpec, Topology } from '../../transport/transport.ts'
import { anyBroker, ask, type Cluster, isUnknownTopic, topicOf, withinLimit } from './client.ts'
import { differences } from './differences.ts'
import { codes, codesIn, saidBy } from './fault.ts'
import { offsetsAt } from './offsets.ts'
import { nameProblem, placeOf } from './options.ts'

export function topology(cluster: Cluster): Topology {
  return {
    async ensure(specs, signal) {
      const { options } = cluster
      const queues = [...new Map(specs.map((spec) => [spec.name, spec])).values()]
      if (queues.length === 0 || options.topology === 'none') return
      const found: string[] = []
      for (const spec of queues) found.push(...(await ensureTopic(cluster, spec, signal)))
      if (found.length > 0) throw new OptionsError('kafka', found)
    },
  }
}

/** Makes what is missing, and answers what is wrong with what is there. */
async function ensureTopic(
  cluster: Cluster,
  { name, horizonMs = 0 }: QueueSpec,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { options } = cluster
  const { topic } = placeOf(options, name)
  const problem = nameProblem(topic)
  if (problem !== undefined) return [problem]
  // What retries may take must fit into what the topic keeps, whatever the option says.
  const retentionMs = Math.max(options.retentionMs, horizonMs)
  if (await exists(cluster, topic, signal)) {
    return differences(cluster, topic, { ...options, retentionMs }, signal)
  }
  if (options.topology === 'check') {
    return [`topic "${topic}" does not exist; make it, or pass topology: 'create'`]
  }
  await create(cluster, topic, retentionMs, signal)
  return []
}

async function exists(cluster: Cluster, topic: string, signal: AbortSignal): Promise<boolean> {
  const look = cluster.asking.metadata({ topics: [topic], forceUpdate: true })
  try {
    await withinLimit(cluster, 'asking for a topic', look, signal)
    return true
  } catch (error) {
    if (isUnknownTopic(error)) return false
    throw error
  }
}

const AGAIN_MS = 50

/** Somebody else may make it at the same time. Brokers learn of a new topic one after the other, so it is waited for. */
/** What was asked for is not what this cluster can do. */
const UNMAKEABLE: readonly number[] = [
  codes.invalidPartitions,
  codes.invalidReplicationFactor,
  codes.invalidConfig,
  codes.policyViolation,
]

async function create(
  cluster: Cluster,
  topic: string,
  retentionMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { asking, module, options } = cluster
  const { partitions, replicas, minInsyncReplicas, maxMessageBytes } = options
  const configs = [
    { name: 'cleanup.policy', value: 'delete' },
    { name: 'retention.ms', value: `${retentionMs}` },
    { name: 'retention.bytes', value: '-1' },
    { name: 'max.message.bytes', value: `${maxMessageBytes}` },
    ...(minInsyncReplicas > 1
      ? [{ name: 'min.insync.replicas', value: `${minInsyncReplicas}` }]
      : []),
  ]
  const wanted = {
    ...{ name: topic, numPartitions: partitions, replicationFactor: replicas },
    ...{ assignments: [], configs },
  }
  const broker = await anyBroker(cluster, asking)
  const call = { cluster, client: asking, broker, what: 'making a topic', signal }
  try {
    await ask(call, module.createTopicsV7.api, [wanted], options.timeoutMs, false)
  } catch (error) {
    const found = codesIn(error)
    if (UNMAKEABLE.some((code) => found.has(code))) {
      throw new OptionsError('kafka', [
        `topic "${topic}" cannot be made with ${partitions} partitions and ${replicas} replicas (${saidBy(error)}); change partitions, replicas or minInsyncReplicas`,
      ])
    }
    if (!found.has(codes.topicExists)) throw error
  }
  await untilLed(cluster, topic, signal)
}

/** A new topic is known before its leaders take it on: until then they answer that they are no leaders. */
async function untilLed(cluster: Cluster, topic: string, signal: AbortSignal): Promise<void> {
  const { asking, clock, options } = cluster
  const giveUpAt = clock.now() + options.timeoutMs
  for (;;) {
    try {
      const found = await topicOf(asking, topic, topic, true)
      const partitions = found.partitions.map((_, at) => at)
      await offsetsAt(cluster, asking, topic, found, partitions, 'latest')
      return
    } catch (error) {
      if (signal.aborted || clock.now() >= giveUpAt) throw error
      await pause(clock, AGAIN_MS, signal)
    }
  }
}
