/** What happened to each message, as the workers saw it. */
export interface History {
  readonly sent: ReadonlySet<string>
  /** Sent, and not yet known to be acked by anybody. */
  readonly inDoubt: ReadonlySet<string>
  stored(id: string): void
  /**
   * The answer to a send was lost, so the same id is sent again. An id is known for as long as its
   * message is stored: when it was acked in between, the second send stores it anew. That is the
   * sender's duplicate, not the queue's.
   */
  sentInDoubt(id: string): void
  /** A release of it left a copy, or did not: whether both were acked says nothing about the queue. */
  doubled(id: string): void
  delivered(id: string): void
  acked(id: string): void
  /** The ack was sent and its answer was lost. */
  maybeAcked(id: string): void
  verdict(): Verdict
}

/** At-least-once: lost and acked twice are failures, duplicates are counted. */
export interface Verdict {
  /** Stored, never acked, and no longer there. */
  readonly lost: readonly string[]
  /** Two workers were both told that their ack counted. */
  readonly ackedTwice: readonly string[]
  /** Delivered after a worker was told that its ack counted. */
  readonly deliveredAfterAck: readonly string[]
  /** Deliveries of something that was never sent. */
  readonly unknown: readonly string[]
  /** Deliveries beyond the first, for whatever reason. */
  readonly duplicates: number
}

export function newHistory(): History {
  const sent = new Set<string>()
  const inDoubt = new Set<string>()
  const deliveries = new Map<string, number>()
  const acks = new Map<string, number>()
  const maybe = new Set<string>()
  /** Stored twice for all that is known. */
  const resent = new Set<string>()
  const deliveredAfterAck: string[] = []
  const bump = (counts: Map<string, number>, id: string): void => {
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  return {
    sent,
    inDoubt,
    stored(id) {
      sent.add(id)
      if (!acks.has(id) && !maybe.has(id)) inDoubt.add(id)
    },
    sentInDoubt: (id) => resent.add(id),
    doubled: (id) => resent.add(id),
    delivered(id) {
      if (acks.has(id) && !resent.has(id)) deliveredAfterAck.push(id)
      bump(deliveries, id)
    },
    acked(id) {
      inDoubt.delete(id)
      bump(acks, id)
    },
    maybeAcked(id) {
      inDoubt.delete(id)
      maybe.add(id)
    },
    verdict: () => ({
      lost: [...sent].filter((id) => !acks.has(id) && !maybe.has(id)),
      ackedTwice: [...acks].filter(([id, count]) => count > 1 && !resent.has(id)).map(([id]) => id),
      deliveredAfterAck,
      unknown: [...deliveries.keys()].filter((id) => !sent.has(id)),
      duplicates: [...deliveries.values()].reduce((sum, count) => sum + count - 1, 0),
    }),
  }
}
