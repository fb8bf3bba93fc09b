import type { StuckRow } from '../transport/stuck-rows.ts'
import type { AuditEntry } from '../transport/transport.ts'

/** `seq`, `id`, `ordering_key`, `tries`, `last_error`, and the two times in epoch ms. */
export function stuckRowOf(row: Readonly<Record<string, unknown>>): StuckRow {
  return {
    messageId: String(row['id']),
    orderingKey: typeof row['ordering_key'] === 'string' ? row['ordering_key'] : undefined,
    tries: Number(row['tries']),
    addedAt: Math.round(Number(row['added_at'])),
    nextTryAt: Math.round(Number(row['next_try_at'])),
    lastError: typeof row['last_error'] === 'string' ? row['last_error'] : undefined,
    place: String(row['seq']),
  }
}

export function discardedOf(queue: string, row: Readonly<Record<string, unknown>>): AuditEntry {
  return {
    at: Math.round(Number(row['at'])),
    act: 'discard',
    queue,
    messageId: String(row['message_id']),
    actor: String(row['actor']),
    reason: String(row['reason']),
  }
}
