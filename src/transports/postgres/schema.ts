import type { PgSchema } from '../../sql/pg-migrate.ts'
import { AGEING } from './ageing.ts'
import { FAIRNESS } from './fairness.ts'
import { FUNCTIONS } from './functions.ts'
import { KEY_LOOKUP } from './key-lookup.ts'
import { ORDERED_KEYS } from './ordered-keys.ts'

/**
 * States: 0 ready, 1 scheduled, 2 in flight, 3 quarantined (taken back from a holder that vanished), 4 behind (an earlier
 * message of its ordering key has not ended).
 *
 * Leases are rows of `claim`, one for a whole receive, so that renewal touches no message. Keys have their own table,
 * because they outlive messages. Moments are cut to milliseconds, which is what the outside sees.
 */
const FIRST: readonly string[] = [
  `CREATE TABLE {schema}.queue (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  owner text NOT NULL,
  max_depth bigint,
  paused boolean NOT NULL DEFAULT false
)`,
  // Vacuum often: nearly every row dies young, and index entries of dead rows are what slows claims down.
  `CREATE TABLE {schema}.message (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ready_at timestamptz NOT NULL,
  sent_at timestamptz NOT NULL,
  claim_id bigint,
  deliveries bigint NOT NULL DEFAULT 0,
  counted bigint NOT NULL DEFAULT 0,
  crashes bigint NOT NULL DEFAULT 0,
  redrives bigint NOT NULL DEFAULT 0,
  throttled_since bigint,
  queue_id integer NOT NULL,
  state smallint NOT NULL,
  priority smallint NOT NULL,
  alone boolean NOT NULL DEFAULT false,
  id text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C",
  ordering_key text COLLATE "C",
  headers text,
  records text,
  body bytea NOT NULL,
  UNIQUE (queue_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_insert_threshold = 100000, autovacuum_vacuum_cost_delay = 1)`,
  'CREATE INDEX message_ready ON {schema}.message (queue_id, priority DESC, seq) WHERE state = 0',
  'CREATE INDEX message_scheduled ON {schema}.message (queue_id, ready_at) WHERE state = 1',
  'CREATE INDEX message_in_flight ON {schema}.message (claim_id) WHERE state = 2',
  'CREATE INDEX message_quarantined ON {schema}.message (queue_id, ready_at) WHERE state = 3',
  `CREATE TABLE {schema}.claim (
  claim_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  expires_at timestamptz NOT NULL,
  queue_id integer NOT NULL,
  owner text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)`,
  'CREATE INDEX claim_expires ON {schema}.claim (expires_at)',
  `CREATE TABLE {schema}.remembered_key (
  queue_id integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C",
  message_id text COLLATE "C" NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (queue_id, kind, key)
)`,
  'CREATE INDEX remembered_key_expires ON {schema}.remembered_key (expires_at)',
  `CREATE TABLE {schema}.dead_letter (
  queue_id integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  dead_at timestamptz NOT NULL,
  error_class text COLLATE "C" NOT NULL,
  reason text NOT NULL,
  owner text NOT NULL,
  sent_at timestamptz NOT NULL,
  priority smallint NOT NULL,
  counted bigint NOT NULL,
  crashes bigint NOT NULL,
  redrives bigint NOT NULL,
  throttled_since bigint,
  idempotency_key text COLLATE "C",
  ordering_key text COLLATE "C",
  headers text,
  records text,
  body bytea NOT NULL,
  PRIMARY KEY (queue_id, id)
)`,
  'CREATE INDEX dead_letter_newest ON {schema}.dead_letter (queue_id, dead_at, id)',
  'CREATE INDEX dead_letter_class ON {schema}.dead_letter (queue_id, error_class, dead_at, id)',
  `CREATE TABLE {schema}.audit (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue_id integer NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  act text NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL
)`,
  'CREATE INDEX audit_queue ON {schema}.audit (queue_id, seq)',
]

export const queueSchema: PgSchema = {
  component: 'queue',
  migrations: [
    { statements: [...FIRST, ...FUNCTIONS] },
    { statements: ORDERED_KEYS, compatibleFrom: 1 },
    { statements: AGEING, compatibleFrom: 1 },
    { statements: FAIRNESS, compatibleFrom: 1 },
    { statements: KEY_LOOKUP, compatibleFrom: 1 },
  ],
}
