import type { SqliteSchema } from '../sql/sqlite-migrate.ts'

/**
 * The first five columns are those of Debezium's outbox event router. `next_try_at` is also how a row is held: a relay
 * that took it moves it into the future.
 */
const FIRST_TABLES = `
CREATE TABLE millrace_outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  aggregatetype TEXT NOT NULL,
  aggregateid TEXT NOT NULL,
  type TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  next_try_at INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  claimed_by TEXT,
  idempotency_key TEXT,
  ordering_key TEXT,
  priority INTEGER NOT NULL,
  delay_ms REAL,
  ready_at REAL,
  remember TEXT,
  headers TEXT NOT NULL,
  payload BLOB NOT NULL
);
CREATE UNIQUE INDEX millrace_outbox_id ON millrace_outbox (aggregatetype, id);
CREATE INDEX millrace_outbox_unordered ON millrace_outbox (next_try_at, seq) WHERE ordering_key IS NULL;
CREATE INDEX millrace_outbox_ordered ON millrace_outbox (aggregatetype, ordering_key, seq)
  WHERE ordering_key IS NOT NULL;
CREATE INDEX millrace_outbox_claimed ON millrace_outbox (claimed_by) WHERE claimed_by IS NOT NULL;
`

/** Who discarded what was stuck, when and why. */
const AUDIT = `
CREATE TABLE millrace_outbox_audit (
  seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  queue TEXT NOT NULL,
  message_id TEXT NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL
);
CREATE INDEX millrace_outbox_audit_newest ON millrace_outbox_audit (queue, seq);
`

const SHARES = 'ALTER TABLE millrace_outbox ADD COLUMN share TEXT;'

/** Why the last try was not taken, for a person. */
const LAST_ERRORS = 'ALTER TABLE millrace_outbox ADD COLUMN last_error TEXT;'

/** Forward only: append, never edit what was released. */
export const sqliteOutboxSchema: SqliteSchema = {
  component: 'outbox',
  migrations: [FIRST_TABLES, AUDIT, SHARES, LAST_ERRORS],
}
