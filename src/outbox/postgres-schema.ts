import type { PgSchema } from '../sql/pg-migrate.ts'

/** The first five columns are those of Debezium's outbox event router. Forward only: append, never edit. */
export const postgresOutboxSchema: PgSchema = {
  component: 'outbox',
  migrations: [
    {
      statements: [
        `CREATE TABLE {schema}.outbox (
  id text COLLATE "C" NOT NULL,
  aggregatetype text COLLATE "C" NOT NULL,
  aggregateid text COLLATE "C" NOT NULL,
  type text NOT NULL,
  payload bytea NOT NULL,
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  next_try_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tries integer NOT NULL DEFAULT 0,
  idempotency_key text,
  ordering_key text COLLATE "C",
  priority smallint NOT NULL,
  delay_ms double precision,
  ready_at double precision,
  remember text,
  headers text NOT NULL
)`,
        'CREATE UNIQUE INDEX outbox_id ON {schema}.outbox (aggregatetype, id)',
        `CREATE INDEX outbox_unordered ON {schema}.outbox (next_try_at, seq)
WHERE ordering_key IS NULL`,
        `CREATE INDEX outbox_ordered ON {schema}.outbox (aggregatetype, ordering_key, seq)
WHERE ordering_key IS NOT NULL`,
      ],
    },
    {
      // Older code neither reads nor writes it.
      compatibleFrom: 1,
      statements: [
        `CREATE TABLE {schema}.outbox_audit (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  queue text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL
)`,
        'CREATE INDEX outbox_audit_newest ON {schema}.outbox_audit (queue, seq)',
      ],
    },
    { statements: ['ALTER TABLE {schema}.outbox ADD COLUMN share text'], compatibleFrom: 1 },
    // Why the last try was not taken, for a person. Older code leaves what is there.
    { statements: ['ALTER TABLE {schema}.outbox ADD COLUMN last_error text'], compatibleFrom: 1 },
  ],
}
