import type { SqliteSchema } from '../../sql/sqlite-migrate.ts'

/**
 * The tables of a store, beside those of transport, inbox and outbox in the same file. AUTOINCREMENT, because a place that
 * was given once tells whether a message was put anew.
 */
const FIRST_TABLES = `
CREATE TABLE millrace_store_key (
  queue TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  message_id TEXT NOT NULL,
  fingerprint TEXT,
  confirmed INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (queue, kind, key)
) WITHOUT ROWID;
CREATE INDEX millrace_store_key_expires ON millrace_store_key (expires_at);
CREATE TABLE millrace_store_delayed (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  id TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  open_at INTEGER NOT NULL,
  taken INTEGER NOT NULL DEFAULT 0,
  message TEXT NOT NULL,
  body BLOB NOT NULL
);
CREATE UNIQUE INDEX millrace_store_delayed_id ON millrace_store_delayed (queue, id);
CREATE INDEX millrace_store_delayed_open ON millrace_store_delayed (queue, open_at, seq);
CREATE TABLE millrace_store_dead_letter (
  seq INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  id TEXT NOT NULL,
  dead_at INTEGER NOT NULL,
  error_class TEXT NOT NULL,
  letter TEXT NOT NULL,
  message TEXT NOT NULL,
  body BLOB NOT NULL
);
CREATE UNIQUE INDEX millrace_store_dead_letter_id ON millrace_store_dead_letter (queue, id);
CREATE INDEX millrace_store_dead_letter_newest ON millrace_store_dead_letter (queue, dead_at, id);
CREATE INDEX millrace_store_dead_letter_class
  ON millrace_store_dead_letter (queue, error_class, dead_at, id);
CREATE TABLE millrace_store_audit (
  seq INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  message_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  act TEXT NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL
);
CREATE INDEX millrace_store_audit_newest ON millrace_store_audit (queue, seq);
CREATE TABLE millrace_store_journal (
  queue TEXT NOT NULL,
  id TEXT NOT NULL,
  history TEXT NOT NULL,
  runner TEXT,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) WITHOUT ROWID;
CREATE INDEX millrace_store_journal_expires ON millrace_store_journal (expires_at);
CREATE TABLE millrace_store_fence (id INTEGER PRIMARY KEY CHECK (id = 1), value INTEGER NOT NULL);
INSERT INTO millrace_store_fence (id, value) VALUES (1, 0);
CREATE TABLE millrace_store_lease (
  name TEXT NOT NULL PRIMARY KEY,
  holder TEXT NOT NULL,
  fence INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX millrace_store_lease_expires ON millrace_store_lease (expires_at);
CREATE TABLE millrace_store_bucket (
  name TEXT NOT NULL PRIMARY KEY,
  tokens REAL NOT NULL,
  at REAL NOT NULL,
  expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX millrace_store_bucket_expires ON millrace_store_bucket (expires_at);
CREATE TABLE millrace_store_counter (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX millrace_store_counter_expires ON millrace_store_counter (expires_at);
CREATE TABLE millrace_store_state (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL,
  version INTEGER NOT NULL
) WITHOUT ROWID;
`

const SLOTS = `
CREATE TABLE millrace_store_slot (
  pool TEXT NOT NULL,
  holder TEXT NOT NULL,
  key TEXT,
  fence INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (pool, holder)
) WITHOUT ROWID;
CREATE INDEX millrace_store_slot_key ON millrace_store_slot (pool, key);
CREATE INDEX millrace_store_slot_expires ON millrace_store_slot (expires_at);
`

/** Forward only: append, never edit what was released. */
export const storeSchema: SqliteSchema = { component: 'store', migrations: [FIRST_TABLES, SLOTS] }
