import { anyBroker, ask, type Cluster } from './client.ts'

const TOPIC = 2
const KEYS = [
  'cleanup.policy',
  'retention.ms',
  'retention.bytes',
  'min.insync.replicas',
  'max.message.bytes',
]

/** What of a topic's settings would lose messages, or refuse them; a sentence each. */
export async function differences(
  cluster: Cluster,
  topic: string,
  needs: Needs,
  signal: AbortSignal,
): Promise<readonly string[]> {
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
  const settings = new Map(
    results.flatMap(({ configs }) => configs).map(({ name, value }) => [name, value ?? '']),
  )
  return problemsOf(topic, settings, needs)
}

export interface Needs {
  readonly retentionMs: number
  readonly minInsyncReplicas: number
  readonly maxMessageBytes: number
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
  if (number('min.insync.replicas') < needs.minInsyncReplicas) {
    say(
      'min.insync.replicas',
      `which confirms with fewer copies than minInsyncReplicas (${needs.minInsyncReplicas})`,
    )
  }
  if (number('max.message.bytes') < needs.maxMessageBytes) {
    say(
      'max.message.bytes',
      `which refuses what maxMessageBytes (${needs.maxMessageBytes}) allows; raise it, or lower the option`,
    )
  }
  return found
}
