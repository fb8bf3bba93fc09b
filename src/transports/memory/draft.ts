import type { Sent } from '../../model/delivery.ts'
import type { Envelope, RememberedKey } from '../../model/envelope.ts'
import { keptEnvelope } from '../../transport/kept-envelope.ts'
import { duplicateOf, refused, stored } from '../../transport/outcomes.ts'
import { refusalOf } from '../../transport/refusal.ts'
import { newEntry } from './entry.ts'
import type { MemoryQueue } from './queue.ts'
import { type Memory, memoryName, newMemory } from './remembered-keys.ts'
import { memoryTraits } from './traits.ts'

/**
 * Messages that are judged but not stored yet, all for one queue. Later ones are judged as if the
 * earlier were.
 */
export interface Draft {
  /** Answers what `send` would; adds the message unless it is refused or a duplicate. */
  add(envelope: Envelope, now: number): Sent
  readonly envelopes: readonly Envelope[]
  /** Stores them; `nextSeq` gives the order of sending. */
  store(now: number, nextSeq: () => number): void
}

export function draft(queue: MemoryQueue): Draft {
  const envelopes: Envelope[] = []
  const ids = new Set<string>()
  const keys = new Map<string, Memory>()

  const recall = (remember: readonly RememberedKey[], now: number): Sent | undefined => {
    let first: string | undefined
    for (const key of remember) {
      const known = keys.get(memoryName(key)) ?? queue.keys.find(memoryName(key), now)
      if (!known) continue
      if (known.fingerprint !== key.fingerprint && key.kind === 'idempotency') {
        return refused('conflict', { id: known.id })
      }
      first ??= known.id
    }
    return first === undefined ? undefined : duplicateOf(first)
  }

  const judge = (envelope: Envelope, now: number): Sent | undefined => {
    const bad = refusalOf(envelope, memoryTraits)
    if (bad) return bad
    const { id } = envelope
    if (ids.has(id) || queue.entries.has(id) || queue.dead.get(id)) return duplicateOf(id)
    const known = envelope.remember && recall(envelope.remember, now)
    if (known !== undefined) return known
    const { maxDepth } = queue.spec
    const depth = queue.entries.size + envelopes.length
    return maxDepth !== undefined && depth >= maxDepth
      ? refused('full', { retryable: true })
      : undefined
  }

  return {
    envelopes,
    add(envelope, now) {
      const answer = judge(envelope, now)
      if (answer) return answer
      ids.add(envelope.id)
      for (const key of envelope.remember ?? []) {
        keys.set(memoryName(key), newMemory(key, envelope.id, now))
      }
      envelopes.push(envelope)
      return stored(envelope.id)
    },
    store(now, nextSeq) {
      for (const memory of keys.values()) queue.keys.add(memory, now)
      for (const envelope of envelopes) {
        const entry = newEntry({ envelope: keptEnvelope(envelope), sentAt: now, seq: nextSeq() })
        queue.place(entry, Math.max(now, envelope.readyAt ?? now + (envelope.delayMs ?? 0)), now)
      }
      if (envelopes.length > 0) queue.wake()
    },
  }
}
