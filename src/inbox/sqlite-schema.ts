import type { SqliteSchema } from '../sql/sqlite-migrate.ts'

const FIRST_TABLES = `
CREATE TABLE millrace_inbox (
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  recorded_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX millrace_inbox_expires ON millrace_inbox (expires_at);
`

/** For latestOnly and reorder (src/versions). Keys as `storedKey` makes them. */
const VERSION_TABLES = `
CREATE TABLE millrace_version_applied (
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE TABLE millrace_reorder_next (
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  next INTEGER NOT NULL,
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE TABLE millrace_reorder_waiting (
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  payload TEXT NOT NULL,
  sent_at INTEGER NOT NULL,
  PRIMARY KEY (queue, key, version)
) WITHOUT ROWID;
`

/** Forward only: append, never edit what was released. */
export const sqliteInboxSchema: SqliteSchema = {
  component: 'inbox',
  migrations: [FIRST_TABLES, VERSION_TABLES],
}
