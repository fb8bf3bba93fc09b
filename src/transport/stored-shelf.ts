import type { DeadLetter } from '../model/dead-letter.ts'
import type { AuditNote, Shelf } from './transport.ts'

/** A place for dead letters that is not the queue's own backend step. A redrive is: get, send to the broker, then `redriven`. */
export interface StoredShelf extends Pick<Shelf, 'list' | 'get' | 'count' | 'discard' | 'audit'> {
  /**
   * Keeps each; one that is here already (queue and id) gives way to the newer one. `deadAt` is set by the store's clock, and
   * is later each time that the same id is put.
   */
  put(batch: readonly Omit<DeadLetter, 'deadAt'>[]): Promise<void>
  /**
   * Removes them after their confirmed send, with an audit entry in the same step. One that was put anew meanwhile (the
   * redriven message died again already) stays; its redrive is written down all the same. Answers the ids that were here.
   */
  redriven(
    queue: string,
    letters: readonly RedrivenLetter[],
    audit: AuditNote,
  ): Promise<readonly string[]>
}

/** The letter as it was when it was sent. */
export interface RedrivenLetter {
  readonly id: string
  readonly deadAt: number
}
