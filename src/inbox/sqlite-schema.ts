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

/** Forward only: append, never edit what was released. */
export const sqliteInboxSchema: SqliteSchema = { component: 'inbox', migrations: [FIRST_TABLES] }
