import type { Clock } from '../../model/clock.ts'
import type { StoredShelf } from '../../store/stored-shelf.ts'
import { type DeadLetters, deadLetters } from '../../transport/dead-letters.ts'
import { keptEnvelope } from '../../transport/kept-envelope.ts'
import type { AuditEntry, AuditNote } from '../../transport/transport.ts'

export interface ShelfState {
  readonly queues: Map<string, DeadLetters>
  /** Oldest first. */
  readonly audit: AuditEntry[]
}

/** Audit entries kept; older ones are forgotten. */
const AUDIT_KEPT = 100_000

export function memoryShelf({ queues, audit }: ShelfState, clock: Clock): StoredShelf {
  const lettersOf = (queue: string): DeadLetters => {
    const known = queues.get(queue)
    if (known) return known
    const made = deadLetters()
    queues.set(queue, made)
    return made
  }
  const note = (
    act: AuditEntry['act'],
    queue: string,
    ids: readonly string[],
    { actor, reason }: AuditNote,
  ): void => {
    const at = clock.now()
    for (const messageId of ids) audit.push({ at, act, queue, messageId, actor, reason })
    audit.splice(0, Math.max(0, audit.length - AUDIT_KEPT))
  }
  return {
    async put(batch) {
      for (const letter of batch) {
        const there = lettersOf(letter.queue)
        const before = there.take(letter.envelope.id)
        const deadAt = Math.max(clock.now(), (before?.deadAt ?? 0) + 1)
        there.add({ ...letter, envelope: keptEnvelope(letter.envelope), deadAt })
      }
    },
    list: async (queue, options) => lettersOf(queue).list(options),
    get: async (queue, id) => lettersOf(queue).get(id),
    count: async (queue, filter) => lettersOf(queue).count(filter),
    async redriven(queue, letters, why) {
      const there = lettersOf(queue)
      const known = letters.filter(({ id }) => there.get(id) !== undefined)
      for (const { id, deadAt } of known) if (there.get(id)?.deadAt === deadAt) there.take(id)
      const ids = known.map(({ id }) => id)
      note('redrive', queue, ids, why)
      return ids
    },
    async discard(queue, ids, why) {
      const gone = ids.filter((id) => lettersOf(queue).take(id) !== undefined)
      note('discard', queue, gone, why)
      return gone
    },
    async audit(queue, limit) {
      const newest = audit.filter((entry) => entry.queue === queue).slice(-limit)
      return newest.reverse()
    },
  }
}
