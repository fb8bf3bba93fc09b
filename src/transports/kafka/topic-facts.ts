import type { TopicLook } from './topic-look.ts'

/** Where a queue's messages and its dead letters lie, for people; see `Transport.facts`. */
export function topicFacts(queue: TopicLook, dead: TopicLook | undefined): readonly string[] {
  const { topic, partitions, settings } = queue
  const kept = keptFor(settings.get('retention.ms'))
  const facts = [`topic "${topic}": ${count(partitions, 'partition')}, ${held(queue)}, ${kept}`]
  if (dead === undefined) return facts
  const weaker =
    dead.copies < queue.copies
      ? `; its queue has ${count(queue.copies, 'copy')}, so what the messages survive may cost the dead letters`
      : ''
  const fact = `topic "${dead.topic}" for dead letters: ${held(dead)}, compacted and never deleted by age or size${weaker}`
  return [...facts, fact]
}

function held({ copies, settings }: TopicLook): string {
  const confirming = Number(settings.get('min.insync.replicas') ?? 1)
  return `${count(copies, 'copy')}, confirmed by ${confirming < copies ? `${confirming} of them at least` : 'all'}`
}

function count(number: number, what: 'partition' | 'copy'): string {
  if (number === 1) return `1 ${what}`
  return `${number} ${what === 'copy' ? 'copies' : 'partitions'}`
}

const DAY_MS = 86_400_000

function keptFor(retentionMs: string | undefined): string {
  const ms = Number(retentionMs ?? Number.NaN)
  if (Number.isNaN(ms)) return 'kept for as long as the broker says'
  return ms < 0 ? 'kept for good' : `kept for ${Number((ms / DAY_MS).toFixed(2))} days`
}
