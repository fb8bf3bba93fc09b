import { anyBroker, ask, type Cluster, topicOf } from './client.ts'

/** A topic as the brokers have it now. */
export interface TopicLook {
  readonly topic: string
  readonly partitions: number
  /** Of the partition that has the fewest. */
  readonly copies: number
  /** By name; what an older broker does not know is missing. */
  readonly settings: ReadonlyMap<string, string>
}

const TOPIC = 2
const KEYS = [
  'cleanup.policy',
  'delete.retention.ms',
  'retention.ms',
  'retention.bytes',
  'min.insync.replicas',
  'unclean.leader.election.enable',
  'max.message.bytes',
]

export async function lookAt(
  cluster: Cluster,
  topic: string,
  signal: AbortSignal,
): Promise<TopicLook> {
  const { asking, module } = cluster
  const { partitions, partitionsCount } = await topicOf(cluster, asking, topic, topic, {
    forceUpdate: true,
    signal,
  })
  const broker = await anyBroker(cluster)
  const what = 'asking for the settings of a topic'
  const call = { cluster, client: asking, broker, what, signal }
  const resource = { resourceType: TOPIC, resourceName: topic, configurationKeys: KEYS } as const
  const { results } = await ask(call, module.describeConfigsV4.api, [resource], false, false)
  return {
    topic,
    partitions: partitionsCount,
    copies: Math.min(...partitions.map(({ replicas }) => replicas.length)),
    settings: new Map(
      results.flatMap(({ configs }) => configs).map(({ name, value }) => [name, value ?? '']),
    ),
  }
}
