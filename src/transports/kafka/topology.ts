import { OptionsError } from '../../model/errors.ts'
import type { QueueSpec, Topology } from '../../transport/transport.ts'
import type { Cluster } from './client.ts'
import { deadDifferences, differences } from './differences.ts'
import { exists, makeTopic } from './make-topic.ts'
import { deadTopicOf, nameProblem, placeOf } from './options.ts'

export function topology(cluster: Cluster): Topology {
  return {
    async ensure(specs, signal) {
      const found = await refusalsOf(cluster, specs, signal, cluster.options.topology)
      if (found.length > 0) throw new OptionsError('kafka', found)
    },
    differences: (specs, signal) => {
      const mode = cluster.options.topology
      return refusalsOf(cluster, specs, signal, mode === 'create' ? 'look' : mode)
    },
  }
}

/** `look`: what is missing would be made, but not now. */
type Mode = 'create' | 'check' | 'none' | 'look'

async function refusalsOf(
  cluster: Cluster,
  specs: readonly QueueSpec[],
  signal: AbortSignal,
  mode: Mode,
): Promise<readonly string[]> {
  if (mode === 'none') return []
  const found: string[] = []
  for (const spec of new Map(specs.map((one) => [one.name, one])).values()) {
    found.push(...(await ensureTopic(cluster, spec, signal, mode)))
    if (cluster.options.deadLetters === 'topic') {
      found.push(...(await ensureDeadTopic(cluster, spec.name, signal, mode)))
    }
  }
  return found
}

/** Makes what is missing, and answers what is wrong with what is there. */
async function ensureTopic(
  cluster: Cluster,
  { name, horizonMs = 0 }: QueueSpec,
  signal: AbortSignal,
  mode: Mode,
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
  if (mode === 'look') return []
  if (mode === 'check') {
    return [`topic "${topic}" does not exist; make it, or pass topology: 'create'`]
  }
  const configs = {
    'cleanup.policy': 'delete',
    'retention.ms': `${retentionMs}`,
    'retention.bytes': '-1',
    'max.message.bytes': `${options.maxMessageBytes}`,
  }
  await makeTopic(cluster, { topic, partitions: options.partitions, configs }, signal)
  return []
}

/** The history of a dead letter, and what it says twice for people and for us. */
const LETTER_HEADROOM = 1024 * 1024

/** As `ensureTopic`, for the dead letters of a queue. */
export async function ensureDeadTopic(
  cluster: Cluster,
  queue: string,
  signal: AbortSignal,
  mode: Mode = cluster.options.topology,
): Promise<readonly string[]> {
  const { options } = cluster
  const topic = deadTopicOf(options, queue)
  const problem = nameProblem(topic)
  if (problem !== undefined) return [problem]
  const maxMessageBytes = options.maxMessageBytes + LETTER_HEADROOM
  if (await exists(cluster, topic, signal)) {
    return deadDifferences(cluster, topic, { ...options, maxMessageBytes }, signal)
  }
  if (mode === 'look') return []
  if (mode !== 'create') {
    return [
      `topic "${topic}" for dead letters does not exist; make it (one partition, cleanup.policy=compact), pass topology: 'create', or deadLetters: 'store'`,
    ]
  }
  const configs = {
    'cleanup.policy': 'compact',
    'max.message.bytes': `${maxMessageBytes}`,
    'delete.retention.ms': `${DAY_MS}`,
    // Segments that are written to are not compacted, so what was redriven and discarded would stay for a week.
    'segment.ms': `${DAY_MS}`,
    'segment.bytes': `${SEGMENT_BYTES}`,
    'min.cleanable.dirty.ratio': '0.1',
  }
  await makeTopic(cluster, { topic, partitions: 1, configs }, signal)
  return []
}

const DAY_MS = 86_400_000
const SEGMENT_BYTES = 64 * 1024 * 1024
