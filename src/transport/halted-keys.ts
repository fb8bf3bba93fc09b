import type { AuditNote } from './transport.ts'

/**
 * Ordering keys that stand still, of queues with `onDead: 'halt-key'`: their head died, and what was sent after it waits until
 * a person decides. A redrive of that dead letter goes to the front of its key and lets it go on; a discard of it lets the key
 * go on without it.
 */
export interface HaltedKeys {
  /** By key, ascending; those behind `after`, `limit` at most. */
  list(queue: string, options: HaltedKeysOptions): Promise<readonly HaltedKey[]>
  get(queue: string, key: string): Promise<HaltedKey | undefined>
  /**
   * Lets the keys go on with the next message; the dead letters stay where they are. Written to the audit log in the same
   * step. Answers the keys that were halted.
   */
  skip(queue: string, keys: readonly string[], audit: AuditNote): Promise<readonly string[]>
}

export interface HaltedKeysOptions {
  readonly limit: number
  /** The last key of the page before. */
  readonly after?: string
}

export interface HaltedKey {
  readonly key: string
  /** The dead letter that halted it. */
  readonly messageId: string
  /** Epoch ms. */
  readonly haltedAt: number
  /** How many messages wait behind it. */
  readonly waiting: number
}

/** Who keeps them, for refusals. */
export const WHO_HALTS = 'Postgres, SQLite, Redis or memory as the transport'
