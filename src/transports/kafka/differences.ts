import { anyBroker, ask, type Cluster, topicOf } from './client.ts'

const TOPIC = 2
const KEYS = [
  'cleanup.policy',
  'retention.ms',
  'retention.bytes',
  'min.insync.replicas',
  'unclean.leader.election.enable',
  'max.message.bytes',
]

/** What of a topic's settings would lose messages, or refuse them; a sentence each. */
export async function differences(
  cluster: Cluster,
  topic: string,
  needs: Needs,
  signal: AbortSignal,
): Promise<readonly string[]> {
  return problemsOf(topic, await settingsOf(cluster, topic, signal), needs)
}

/** The same of a topic of dead letters. */
export async function deadDifferences(
  cluster: Cluster,
  topic: string,
  needs: DeadNeeds,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { partitionsCount } = await topicOf(cluster.asking, topic, topic)
  const settings = await settingsOf(cluster, topic, signal)
  return deadProblemsOf(topic, partitionsCount, settings, needs)
}

async function settingsOf(
  cluster: Cluster,
  topic: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const { asking, module } = cluster
  const broker = await anyBroker(cluster, asking)
  const call = {
    cluster,
    client: asking,
    broker,
    what: 'asking for the settings of a topic',
    signal,
  }
  const resource = { resourceType: TOPIC, resourceName: topic, configurationKeys: KEYS } as const
  const { results } = await ask(call, module.describeConfigsV4.api, [resource], false, false)
  return new Map(
    results.flatMap(({ configs }) => configs).map(({ name, value }) => [name, value ?? '']),
  )
}

export interface DeadNeeds {
  readonly minInsyncReplicas: number
  readonly maxMessageBytes: number
}

export interface Needs extends DeadNeeds {
  readonly retentionMs: number
}

/** Pure, for its table of tests. */
export function problemsOf(
  topic: string,
  settings: ReadonlyMap<string, string>,
  needs: Needs,
): readonly string[] {
  const found: string[] = []
  const number = (name: string): number => Number(settings.get(name) ?? Number.NaN)
  const say = (name: string, why: string): void => {
    found.push(`topic "${topic}": ${name} is ${settings.get(name)}, ${why}`)
  }
  const policy = settings.get('cleanup.policy')
  if (policy !== undefined && policy !== 'delete') {
    say('cleanup.policy', 'which loses messages that share a key; a queue needs delete')
  }
  const retentionMs = number('retention.ms')
  if (retentionMs >= 0 && retentionMs < needs.retentionMs) {
    say(
      'retention.ms',
      `which loses messages before retentionMs and all retries are over (${needs.retentionMs}); raise it, or lower what is longer`,
    )
  }
  if (number('retention.bytes') >= 0) {
    say('retention.bytes', 'which loses unread messages when the topic grows; a queue needs -1')
  }
  return [...found, ...commonProblems(topic, settings, needs)]
}

/** Pure, too. */
export function deadProblemsOf(
  topic: string,
  partitions: number,
  settings: ReadonlyMap<string, string>,
  needs: DeadNeeds,
): readonly string[] {
  const found: string[] = []
  const policy = settings.get('cleanup.policy')
  if (policy !== undefined && policy !== 'compact') {
    found.push(
      `topic "${topic}": cleanup.policy is ${policy}, which deletes dead letters by age or size; they need compact alone`,
    )
  }
  if (partitions !== 1) {
    found.push(
      `topic "${topic}": it has ${partitions} partitions, and dead letters need one; name another in queues.<name>.dead`,
    )
  }
  return [...found, ...commonProblems(topic, settings, needs)]
}

function commonProblems(
  topic: string,
  settings: ReadonlyMap<string, string>,
  { minInsyncReplicas, maxMessageBytes }: DeadNeeds,
): readonly string[] {
  const found: string[] = []
  const copies = settings.get('min.insync.replicas')
  if (Number(copies) < minInsyncReplicas) {
    found.push(
      `topic "${topic}": min.insync.replicas is ${copies}, which confirms with fewer copies than minInsyncReplicas (${minInsyncReplicas})`,
    )
  }
  if (settings.get('unclean.leader.election.enable') === 'true') {
    found.push(
      `topic "${topic}": unclean.leader.election.enable is true, which lets a broker without the newest messages lead and drop them; set it to false`,
    )
  }
  const bytes = settings.get('max.message.bytes')
  if (Number(bytes) < maxMessageBytes) {
    found.push(
      `topic "${topic}": max.message.bytes is ${bytes}, which refuses what maxMessageBytes allows (${maxMessageBytes}); raise it, or lower the option`,
    )
  }
  return found
}
