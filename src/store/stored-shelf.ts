import type { DeadLetter } from '../model/dead-letter.ts'
import type { AuditNote, Shelf } from '../transport/transport.ts'

/** The dead letters of brokers that cannot list theirs. A redrive is: get, send to the broker, then `redriven`. */
export interface StoredShelf extends Pick<Shelf, 'list' | 'get' | 'count' | 'discard' | 'audit'> {
  /** Keeps each; one that is here already (queue and id) is left as it is. `deadAt` is set by the store's clock. */
  put(batch: readonly Omit<DeadLetter, 'deadAt'>[]): Promise<void>
  /** Removes them after their confirmed send, with an audit entry in the same step. Answers the ids that were here. */
  redriven(queue: string, ids: readonly string[], audit: AuditNote): Promise<readonly string[]>
}
