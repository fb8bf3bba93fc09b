import type { AuditEntry, AuditNote } from './transport.ts'

/** A row that the transport did not take: it is tried again, and with an ordering key keeps the later ones of that back. */
export interface StuckRow {
  readonly messageId: string
  readonly orderingKey: string | undefined
  /** How often it was tried; at least once. */
  readonly tries: number
  /** Epoch ms. */
  readonly addedAt: number
  readonly nextTryAt: number
  /** What the last try that was told of said: a fault's code and, where there is one, its reason, redacted. Undefined after a relay that died over it. */
  readonly lastError: string | undefined
  /** Its place in the table, opaque: where a later page goes on. */
  readonly place: string
}

/** Rows by queue and message id, for a person who decides what becomes of them. */
export interface StuckRows {
  /** The oldest first. */
  list(
    queue: string,
    options: { readonly limit: number; readonly after: string | undefined },
  ): Promise<readonly StuckRow[]>
  /** Makes them due now. Answers the ids that were stuck. */
  retry(queue: string, ids: readonly string[]): Promise<readonly string[]>
  /** Removes them for good, with an audit entry each in the same step; none that a relay is publishing. Answers the ids that were. */
  discard(queue: string, ids: readonly string[], audit: AuditNote): Promise<readonly string[]>
  /** Newest first. */
  audit(queue: string, limit: number): Promise<readonly AuditEntry[]>
}
