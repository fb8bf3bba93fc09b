import { OptionsError } from '../../model/errors.ts'
import type { QueueSpec, Topology } from '../../transport/transport.ts'
import type { Cluster } from './client.ts'
import { deadProblemsOf, problemsOf, REMOVALS_MS } from './differences.ts'
import { groupMemoryFacts } from './group-memory.ts'
import { exists, makeTopic } from './make-topic.ts'
import { deadTopicOf, nameProblem, placeOf } from './options.ts'
import { topicFacts } from './topic-facts.ts'
import { lookAt, type TopicLook } from './topic-look.ts'

/** @param facts filled with what was seen of each queue that was ensured; see `Transport.facts` */
export function topology(cluster: Cluster, facts: string[]): Topology {
  const seen = new Map<string, readonly string[]>()
  return {
    async ensure(specs, signal) {
      const found = await refusalsOf(cluster, specs, signal, cluster.options.topology, seen)
      if (found.length > 0) throw new OptionsError('kafka', found)
      const ofGroups = await groupMemoryFacts(cluster, signal)
      facts.splice(0, facts.length, ...[...seen.values()].flat(), ...ofGroups)
    },
    differences: (specs, signal) => {
      const mode = cluster.options.topology
      return refusalsOf(cluster, specs, signal, mode === 'create' ? 'look' : mode)
    },
  }
}

/** `look`: what is missing would be made, but not now. */
type Mode = 'create' | 'check' | 'none' | 'look'

/** What is wrong with a topic, and the topic where it is there. */
interface Ensured {
  readonly problems: readonly string[]
  readonly look?: TopicLook
}

async function refusalsOf(
  cluster: Cluster,
  specs: readonly QueueSpec[],
  signal: AbortSignal,
  mode: Mode,
  seen: Map<string, readonly string[]> = new Map(),
): Promise<readonly string[]> {
  const found: string[] = []
  for (const spec of new Map(specs.map((one) => [one.name, one])).values()) {
    if (mode === 'none') {
      const { topic } = placeOf(cluster.options, spec.name)
      seen.set(spec.name, [`topic "${topic}": topology is none, so nothing of it is checked`])
      continue
    }
    const queue = await ensureTopic(cluster, spec, signal, mode)
    const isHere = cluster.options.deadLetters === 'topic'
    const dead = isHere ? await ensureDeadTopic(cluster, spec.name, signal, mode) : undefined
    found.push(...queue.problems, ...(dead?.problems ?? []))
    if (queue.look !== undefined) seen.set(spec.name, topicFacts(queue.look, dead?.look))
  }
  return found
}

/** Makes what is missing, and answers what is wrong with what is there. */
async function ensureTopic(
  cluster: Cluster,
  { name, horizonMs = 0 }: QueueSpec,
  signal: AbortSignal,
  mode: Mode,
): Promise<Ensured> {
  const { options } = cluster
  const { topic } = placeOf(options, name)
  const problem = nameProblem(topic)
  if (problem !== undefined) return { problems: [problem] }
  // What retries may take must fit into what the topic keeps, whatever the option says.
  const retentionMs = Math.max(options.retentionMs, horizonMs)
  const judged = (look: TopicLook): Ensured => ({
    problems: problemsOf(look, { ...options, retentionMs }),
    look,
  })
  if (await exists(cluster, topic, signal)) return judged(await lookAt(cluster, topic, signal))
  if (mode === 'look') return { problems: [] }
  if (mode === 'check') {
    return {
      problems: [`topic "${topic}" does not exist; make it, or pass topology: 'create'`],
    }
  }
  const configs = {
    'cleanup.policy': 'delete',
    'retention.ms': `${retentionMs}`,
    'retention.bytes': '-1',
    'max.message.bytes': `${options.maxMessageBytes}`,
  }
  return judged(
    await makeTopic(cluster, { topic, partitions: options.partitions, configs }, signal),
  )
}

/** The history of a dead letter, and what it says twice for people and for us. */
const LETTER_HEADROOM = 1024 * 1024

/** As `ensureTopic`, for the dead letters of a queue. */
export async function ensureDeadTopic(
  cluster: Cluster,
  queue: string,
  signal: AbortSignal,
  mode: Mode = cluster.options.topology,
): Promise<Ensured> {
  const { options } = cluster
  const topic = deadTopicOf(options, queue)
  const problem = nameProblem(topic)
  if (problem !== undefined) return { problems: [problem] }
  const maxMessageBytes = options.maxMessageBytes + LETTER_HEADROOM
  const judged = (look: TopicLook): Ensured => ({
    problems: deadProblemsOf(look, { ...options, maxMessageBytes }),
    look,
  })
  if (await exists(cluster, topic, signal)) return judged(await lookAt(cluster, topic, signal))
  if (mode === 'look') return { problems: [] }
  if (mode !== 'create') {
    return {
      problems: [
        `topic "${topic}" for dead letters does not exist; make it (one partition, cleanup.policy=compact), pass topology: 'create', or deadLetters: 'store'`,
      ],
    }
  }
  const configs = {
    'cleanup.policy': 'compact',
    'max.message.bytes': `${maxMessageBytes}`,
    'delete.retention.ms': `${REMOVALS_MS}`,
    // Segments that are written to are not compacted, so what was redriven and discarded would stay for a week.
    'segment.ms': `${DAY_MS}`,
    'segment.bytes': `${SEGMENT_BYTES}`,
    'min.cleanable.dirty.ratio': '0.1',
  }
  return judged(await makeTopic(cluster, { topic, partitions: 1, configs }, signal))
}

const DAY_MS = 86_400_000
const SEGMENT_BYTES = 64 * 1024 * 1024
