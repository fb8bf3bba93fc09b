import { OptionsError } from '../../model/errors.ts'
import type { QueueSpec, Topology } from '../../transport/transport.ts'
import { anyBroker, ask, type Cluster, isUnknownTopic, withinLimit } from './client.ts'
import { differences } from './differences.ts'
import { codes, codesIn } from './fault.ts'
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
  { name }: QueueSpec,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { options } = cluster
  const { topic } = placeOf(options, name)
  const problem = nameProblem(topic)
  if (problem !== undefined) return [problem]
  if (await exists(cluster, topic, signal)) return differences(cluster, topic, signal)
  if (options.topology === 'check') {
    return [`topic "${topic}" does not exist; make it, or pass topology: 'create'`]
  }
  await create(cluster, topic, signal)
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

const AGAIN_MAX = 50

/** Somebody else may make it at the same time. Brokers learn of a new topic one after the other, so it is waited for. */
async function create(cluster: Cluster, topic: string, signal: AbortSignal): Promise<void> {
  const { asking, module, options } = cluster
  const { partitions, replicas, retentionMs, minInsyncReplicas, maxMessageBytes } = options
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
    if (!codesIn(error).has(codes.topicExists)) throw error
  }
  for (let tries = 0; tries < AGAIN_MAX; tries++) {
    if (await exists(cluster, topic, signal)) return
  }
}
