import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { allRefused } from '../../transport/atomic.ts'
import { refused } from '../../transport/outcomes.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import type { AuditEntry, QueueSpec } from '../../transport/transport.ts'
import { draft } from './draft.ts'
import { type MemoryQueue, memoryQueue } from './queue.ts'
import { type OpenTransactions, openTransactions } from './transaction.ts'

/** What all connections of one connector share. */
export interface Store {
  readonly databaseId: string
  readonly transactions: OpenTransactions
  queue(name: string): MemoryQueue | undefined
  ensure(spec: QueueSpec): void
  send(queue: string, batch: readonly Envelope[], atomic: boolean, now: number): readonly Sent[]
  nextSeq(): number
  /** When a scheduled message or a lease of any queue falls due. */
  nextDueAt(): number | undefined
  audit(entry: AuditEntry): void
  audited(queue: string, limit: number): readonly AuditEntry[]
}

/** Audit entries kept per store; older ones are forgotten. */
const AUDIT_KEPT = 100_000

export function newStore(databaseId: string): Store {
  const queues = new Map<string, MemoryQueue>()
  let audit: AuditEntry[] = []
  let fence = 0n
  let seq = 0
  const nextFence = (): bigint => {
    fence += 1n
    return fence
  }
  const store: Store = {
    databaseId,
    transactions: openTransactions(() => store),
    queue: (name) => queues.get(name),
    ensure(spec) {
      const known = queues.get(spec.name)
      if (known) known.spec = spec
      else queues.set(spec.name, memoryQueue(spec, nextFence))
    },
    send(name, batch, atomic, now) {
      const queue = queues.get(name)
      if (!queue) return batch.map(() => refused('notFound'))
      const plan = draft(queue)
      const sent = batch.map((envelope) => plan.add(envelope, now))
      const undone = atomic ? allRefused(sent) : undefined
      if (undone !== undefined) return undone
      plan.store(now, store.nextSeq)
      return sent
    },
    nextSeq() {
      seq += 1
      return seq
    },
    nextDueAt() {
      const moments = [...queues.values()].map(
        (queue) => queue.nextDueAt() ?? Number.POSITIVE_INFINITY,
      )
      const first = Math.min(...moments)
      return Number.isFinite(first) ? first : undefined
    },
    audit(entry) {
      audit.push(entry)
      if (audit.length > 2 * AUDIT_KEPT) audit = audit.slice(-AUDIT_KEPT)
    },
    audited(name, limit) {
      const found: AuditEntry[] = []
      for (let at = audit.length - 1; at >= 0 && found.length < limit; at--) {
        const entry = audit[at]
        if (entry?.queue === name) found.push(entry)
      }
      return found
    },
  }
  return store
}

/** A queue that must be there; a transport is asked only for queues that were ensured. */
export function needQueue(store: Store, name: string): MemoryQueue {
  const queue = store.queue(name)
  if (queue) return queue
  throw unknownQueueError(name)
}
