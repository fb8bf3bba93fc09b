import type { PgSchema } from '../sql/pg-migrate.ts'

/** Forward only: append, never edit what was released. */
export const postgresInboxSchema: PgSchema = {
  component: 'inbox',
  migrations: [
    {
      statements: [
        `CREATE TABLE {schema}.inbox (
  queue text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  recorded_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (queue, key)
)`,
        'CREATE INDEX inbox_expires ON {schema}.inbox (expires_at)',
      ],
    },
    {
      // For latestOnly and reorder (src/versions). Keys as `storedKey` makes them.
      statements: [
        `CREATE TABLE {schema}.version_applied (
  queue text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (queue, key)
)`,
        `CREATE TABLE {schema}.reorder_next (
  queue text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  next bigint NOT NULL,
  PRIMARY KEY (queue, key)
)`,
        `CREATE TABLE {schema}.reorder_waiting (
  queue text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  payload text NOT NULL,
  sent_at bigint NOT NULL,
  PRIMARY KEY (queue, key, version)
)`,
      ],
    },
  ],
}
