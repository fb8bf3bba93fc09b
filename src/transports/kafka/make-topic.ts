import { pause } from '../../model/clock.ts'
import { OptionsError } from '../../model/errors.ts'
import { anyBroker, ask, type Cluster, isUnknownTopic, topicOf, withinLimit } from './client.ts'
import { codes, codesIn, saidBy } from './fault.ts'
import { offsetsAt } from './offsets.ts'
import { lookAt, type TopicLook } from './topic-look.ts'

export async function exists(
  cluster: Cluster,
  topic: string,
  signal: AbortSignal,
): Promise<boolean> {
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

/** What was asked for is not what this cluster can do. */
const UNMAKEABLE: readonly number[] = [
  codes.invalidPartitions,
  codes.invalidReplicationFactor,
  codes.invalidConfig,
  codes.policyViolation,
]

export interface NewTopic {
  readonly topic: string
  readonly partitions: number
  /** Besides `min.insync.replicas`. */
  readonly configs: Readonly<Record<string, string>>
}

/** Answers what came of it. Somebody else may make it at the same time. Brokers learn of a new topic one after the other, so it is waited for. */
export async function makeTopic(
  cluster: Cluster,
  { topic, partitions, configs: given }: NewTopic,
  signal: AbortSignal,
): Promise<TopicLook> {
  const { asking, module, options } = cluster
  const { replicas, minInsyncReplicas } = options
  const all = {
    ...given,
    ...(minInsyncReplicas > 1 && { 'min.insync.replicas': `${minInsyncReplicas}` }),
  }
  const configs = Object.entries(all).map(([name, value]) => ({ name, value }))
  const wanted = {
    ...{ name: topic, numPartitions: partitions, replicationFactor: replicas },
    ...{ assignments: [], configs },
  }
  const broker = await anyBroker(cluster)
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
  return await untilLed(cluster, topic, signal)
}

/** A new topic is known before its leaders take it on: until then they answer that they are no leaders. */
async function untilLed(cluster: Cluster, topic: string, signal: AbortSignal): Promise<TopicLook> {
  const { asking, clock, options } = cluster
  const giveUpAt = clock.now() + options.timeoutMs
  for (;;) {
    try {
      const found = await topicOf(cluster, asking, topic, topic, { forceUpdate: true })
      const partitions = found.partitions.map((_, at) => at)
      await offsetsAt(cluster, asking, topic, found, partitions, 'latest')
      return await lookAt(cluster, topic, signal)
    } catch (error) {
      if (signal.aborted || clock.now() >= giveUpAt) throw error
      await pause(clock, AGAIN_MS, signal)
    }
  }
}
