import type { Traits } from '../transport/traits.ts'

/** How many levels of priority a queue has, each in a queue of its own on the backend. */
export interface Levels {
  /** 2 to 10. */
  readonly count: number
  /** What a level is worth, in ms of waiting; see `transport/ageing.ts`. */
  readonly ageingMs: number
}

/**
 * Where a level is on the backend. Level 0 is the queue itself, so one that had no levels begins with what waits in it. Of the
 * characters that every broker takes in a name.
 */
export function levelQueue(queue: string, level: number): string {
  return level === 0 ? queue : `${queue}-p${level}`
}

export function levelQueues(queue: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, level) => levelQueue(queue, level))
}

/** Why no levels can be had of a backend without priorities, a phrase; undefined where they can. */
export function levelsProblem({
  dedupe,
  keepsHistory,
  order,
  settles,
}: Pick<Traits, 'dedupe' | 'keepsHistory' | 'order' | 'settles'>): string | undefined {
  if (settles === 'upTo') {
    return 'commits positions, so a message that waits for its turn would hold up its partition'
  }
  // A message that failed stays in its place there, whatever is more urgent.
  if (order !== 'none' && !keepsHistory) return 'keeps its messages in the order sent'
  if (dedupe !== 'none') return 'remembers keys for each of its queues, not for all levels together'
  return undefined
}
