import type { TopicLook } from './topic-look.ts'

export interface DeadNeeds {
  readonly minInsyncReplicas: number
  readonly maxMessageBytes: number
}

export interface Needs extends DeadNeeds {
  readonly retentionMs: number
}

/** What of a topic would lose messages, or refuse them; a sentence each. */
export function problemsOf(look: TopicLook, needs: Needs): readonly string[] {
  const { topic, settings } = look
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
  return [...found, ...commonProblems(look, needs)]
}

/** Removals stay in the topic for so long, so that a process which reads it twice a day has missed none. */
export const REMOVALS_MS = 86_400_000

/** The same of a topic of dead letters. */
export function deadProblemsOf(look: TopicLook, needs: DeadNeeds): readonly string[] {
  const { topic, partitions, settings } = look
  const found: string[] = []
  const policy = settings.get('cleanup.policy')
  if (policy !== undefined && policy !== 'compact') {
    found.push(
      `topic "${topic}": cleanup.policy is ${policy}, which deletes dead letters by age or size; they need compact alone`,
    )
  }
  const removalsMs = settings.get('delete.retention.ms')
  if (Number(removalsMs) < REMOVALS_MS) {
    found.push(
      `topic "${topic}": delete.retention.ms is ${removalsMs}, so a process may miss what another one redrove or discarded, and list it still; dead letters need ${REMOVALS_MS} or more`,
    )
  }
  if (partitions !== 1) {
    found.push(
      `topic "${topic}": it has ${partitions} partitions, and dead letters need one; name another in queues.<name>.dead`,
    )
  }
  return [...found, ...commonProblems(look, needs)]
}

function commonProblems(
  { topic, copies: all, settings }: TopicLook,
  { minInsyncReplicas, maxMessageBytes }: DeadNeeds,
): readonly string[] {
  const found: string[] = []
  const copies = settings.get('min.insync.replicas')
  if (Number(copies) < minInsyncReplicas) {
    found.push(
      `topic "${topic}": min.insync.replicas is ${copies}, which confirms with fewer copies than minInsyncReplicas (${minInsyncReplicas})`,
    )
  }
  const needed = Math.max(minInsyncReplicas, Number(copies ?? 1))
  if (all < needed) {
    found.push(
      `topic "${topic}": it has ${all} ${all === 1 ? 'copy' : 'copies'}, so it can never confirm with the ${needed} that are asked for (min.insync.replicas, minInsyncReplicas); give it more copies`,
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
