import type { SqliteSchema } from '../../sql/sqlite-migrate.ts'

/**
 * State: 0 ready, 1 scheduled, 2 in flight, 3 quarantined (ready, but alone), 4 behind (from version 2 on: an earlier message
 * of its ordering key has not ended). One partial index for each, so that a
 * claim costs the same however long the backlog is. The body comes last: SQLite reads a row from the left.
 */
const FIRST_TABLES = `
CREATE TABLE millrace_queue (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  max_depth INTEGER,
  paused INTEGER NOT NULL DEFAULT 0,
  total INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE millrace_message (
  seq INTEGER PRIMARY KEY,
  queue_id INTEGER NOT NULL,
  id TEXT NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  ready_at INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  deliveries INTEGER NOT NULL DEFAULT 0,
  alone INTEGER NOT NULL DEFAULT 0,
  counted INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  redrives INTEGER NOT NULL DEFAULT 0,
  throttled_since INTEGER,
  idempotency_key TEXT,
  ordering_key TEXT,
  headers TEXT NOT NULL,
  records TEXT NOT NULL DEFAULT '[]',
  body BLOB NOT NULL
);
CREATE UNIQUE INDEX millrace_message_id ON millrace_message (queue_id, id);
CREATE INDEX millrace_message_ready
  ON millrace_message (queue_id, priority DESC, ready_at, seq) WHERE state = 0;
CREATE INDEX millrace_message_scheduled ON millrace_message (queue_id, ready_at) WHERE state = 1;
CREATE INDEX millrace_message_in_flight ON millrace_message (lease_until, queue_id) WHERE state = 2;
CREATE INDEX millrace_message_quarantined ON millrace_message (queue_id, ready_at) WHERE state = 3;
CREATE TABLE millrace_remembered_key (
  queue_id INTEGER NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT,
  message_id TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (queue_id, kind, key)
) WITHOUT ROWID;
CREATE INDEX millrace_remembered_key_expires ON millrace_remembered_key (expires_at);
CREATE TABLE millrace_dead_letter (
  seq INTEGER PRIMARY KEY,
  queue_id INTEGER NOT NULL,
  id TEXT NOT NULL,
  dead_at INTEGER NOT NULL,
  error_class TEXT NOT NULL,
  reason TEXT NOT NULL,
  owner TEXT NOT NULL,
  priority INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  counted INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  redrives INTEGER NOT NULL,
  throttled_since INTEGER,
  idempotency_key TEXT,
  ordering_key TEXT,
  headers TEXT NOT NULL,
  records TEXT NOT NULL,
  body BLOB NOT NULL
);
CREATE UNIQUE INDEX millrace_dead_letter_id ON millrace_dead_letter (queue_id, id);
CREATE INDEX millrace_dead_letter_newest ON millrace_dead_letter (queue_id, dead_at, id);
CREATE INDEX millrace_dead_letter_class
  ON millrace_dead_letter (queue_id, error_class, dead_at, id);
CREATE TABLE millrace_audit (
  seq INTEGER PRIMARY KEY,
  queue_id INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  act TEXT NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL
);
CREATE INDEX millrace_audit_newest ON millrace_audit (queue_id, seq);
`

/**
 * Order by key: of each key one message is not behind, its head. Messages of one key that waited before are lined up here;
 * those in flight at that moment stay, and the key goes on when the last of them has ended.
 */
const ORDERED_KEYS = `
CREATE INDEX millrace_message_ordering_key ON millrace_message (queue_id, ordering_key, state, seq)
  WHERE ordering_key IS NOT NULL;
CREATE TABLE millrace_halted_key (
  queue_id INTEGER NOT NULL,
  ordering_key TEXT NOT NULL,
  message_id TEXT NOT NULL,
  halted_at INTEGER NOT NULL,
  PRIMARY KEY (queue_id, ordering_key)
) WITHOUT ROWID;
ALTER TABLE millrace_queue ADD COLUMN on_dead TEXT NOT NULL DEFAULT 'continue';
UPDATE millrace_message AS later SET state = 4
WHERE ordering_key IS NOT NULL AND state <> 2 AND EXISTS (
  SELECT 1 FROM millrace_message AS earlier
  WHERE earlier.queue_id = later.queue_id AND earlier.ordering_key = later.ordering_key
    AND (earlier.seq < later.seq OR earlier.state = 2));
`

/** What a level of priority is worth, in ms of waiting. */
const AGEING = 'ALTER TABLE millrace_queue ADD COLUMN ageing_ms INTEGER NOT NULL DEFAULT 60000;'

/**
 * Fairness: state -1 is ready with a place among the fair keys of its priority (below 4, so that code of version 2 counts it as the head of its
 * ordering key). What became ready (state 0) and has a fair key gets its place before its transaction ends. Only such messages are in these indexes.
 */
const FAIRNESS = `
ALTER TABLE millrace_message ADD COLUMN fair_key TEXT;
ALTER TABLE millrace_message ADD COLUMN fair_weight REAL;
ALTER TABLE millrace_message ADD COLUMN place REAL;
ALTER TABLE millrace_dead_letter ADD COLUMN fair_key TEXT;
ALTER TABLE millrace_dead_letter ADD COLUMN fair_weight REAL;
CREATE INDEX millrace_message_arrived ON millrace_message (queue_id, ready_at, seq)
  WHERE state = 0 AND fair_key IS NOT NULL;
CREATE INDEX millrace_message_fair ON millrace_message (queue_id, priority DESC, place, seq)
  WHERE state = -1;
CREATE INDEX millrace_message_share ON millrace_message (queue_id, priority, fair_key, place)
  WHERE state = -1;
CREATE INDEX millrace_message_fair_age ON millrace_message (queue_id, priority, ready_at)
  WHERE state = -1;
`

/** Forward only: append, never edit what was released. */
export const queueSchema: SqliteSchema = {
  component: 'queue',
  migrations: [FIRST_TABLES, ORDERED_KEYS, AGEING, FAIRNESS],
}
