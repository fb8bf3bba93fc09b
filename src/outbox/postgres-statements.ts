import { UNREAD_MS, unreadLimit } from '../sql/pg-setting.ts'

/** Every statement on the outbox in Postgres; `{schema}` is replaced once, at connect. */
export const postgresOutboxStatements = {
  /** Parameters: queue, type, then one array for each column. Numbered in the order of the batch. */
  ADD: `
INSERT INTO {schema}.outbox (aggregatetype, type, id, aggregateid, payload, idempotency_key, ordering_key,
  priority, delay_ms, ready_at, remember, headers, share)
SELECT $1::text, $2::text, r.id, r.aggregateid, r.payload, r.idempotency_key, r.ordering_key,
  r.priority, r.delay_ms, r.ready_at, r.remember, r.headers, r.share
FROM unnest($3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[], $8::int4[], $9::float8[],
  $10::float8[], $11::text[], $12::text[], $13::text[]) WITH ORDINALITY
  AS r (id, aggregateid, payload, idempotency_key, ordering_key, priority, delay_ms, ready_at, remember,
    headers, share, place)
ORDER BY r.place
ON CONFLICT (aggregatetype, id) DO NOTHING
RETURNING id`,

  HAS_ROWS: 'SELECT 1::int4 AS found FROM {schema}.outbox LIMIT 1',

  /** A relay that is stopped while it publishes holds its rows no longer than this, and not as long while it reads. Parameter: ms as text. */
  LIMIT:
    `SELECT set_config('idle_in_transaction_session_timeout', $1::text, true), ${unreadLimit(`${UNREAD_MS}`)}` as string,

  /**
   * Takes ordering keys: one after another from (queue, key) on, each only if its first row is due and no other relay
   * has the key. The lock is on the key and not on its first row, because a transaction that commits late can put a row
   * before it. Parameters: queue, key, most keys, schema.
   */
  TAKE_KEYS: `
WITH RECURSIVE head AS (
  (SELECT aggregatetype, ordering_key, seq, next_try_at FROM {schema}.outbox
   WHERE ordering_key IS NOT NULL AND (aggregatetype, ordering_key) > ($1::text, $2::text)
   ORDER BY aggregatetype, ordering_key, seq LIMIT 1)
  UNION ALL
  SELECT following.* FROM head CROSS JOIN LATERAL (
    SELECT o.aggregatetype, o.ordering_key, o.seq, o.next_try_at FROM {schema}.outbox AS o
    WHERE o.ordering_key IS NOT NULL
      AND (o.aggregatetype, o.ordering_key) > (head.aggregatetype, head.ordering_key)
    ORDER BY o.aggregatetype, o.ordering_key, o.seq LIMIT 1) AS following
), looked_at AS MATERIALIZED (SELECT * FROM head LIMIT $3::int4)
SELECT aggregatetype AS queue, ordering_key AS key, seq::text AS seq,
  CASE WHEN next_try_at <= clock_timestamp()
    THEN pg_try_advisory_xact_lock(
      hashtextextended('millrace.outbox ' || $4::text || ' ' || aggregatetype || ' ' || ordering_key, 0))
    ELSE false END AS taken
FROM looked_at`,

  /** The rows of keys that were taken, seen after they were. Parameters: queues, keys, most of a key, most rows. */
  OF_KEYS: `
SELECT row.*
FROM unnest($1::text[], $2::text[]) AS taken (queue, key)
CROSS JOIN LATERAL (
  SELECT o.seq::text AS seq, o.id, o.aggregatetype, o.payload, o.headers, o.idempotency_key, o.ordering_key,
    o.priority::int4 AS priority, o.delay_ms, o.ready_at, o.remember, o.share, o.tries,
    o.next_try_at <= clock_timestamp() AS due,
    (extract(epoch FROM clock_timestamp() - o.created_at) * 1000)::float8 AS waited_ms
  FROM {schema}.outbox AS o
  WHERE o.ordering_key IS NOT NULL AND o.aggregatetype = taken.queue AND o.ordering_key = taken.key
  ORDER BY o.aggregatetype, o.ordering_key, o.seq LIMIT $3::int4
  FOR UPDATE SKIP LOCKED) AS row
ORDER BY row.seq::bigint LIMIT $4::int4`,

  /** Parameter: most rows. */
  UNORDERED: `
SELECT o.seq::text AS seq, o.id, o.aggregatetype, o.payload, o.headers, o.idempotency_key, o.ordering_key,
  o.priority::int4 AS priority, o.delay_ms, o.ready_at, o.remember, o.share, o.tries,
  (extract(epoch FROM clock_timestamp() - o.created_at) * 1000)::float8 AS waited_ms
FROM {schema}.outbox AS o
WHERE o.ordering_key IS NULL AND o.next_try_at <= clock_timestamp()
ORDER BY o.next_try_at, o.seq LIMIT $1::int4
FOR UPDATE OF o SKIP LOCKED`,

  /** Parameter: places. */
  REMOVE: 'DELETE FROM {schema}.outbox WHERE seq = ANY ($1::bigint[])',

  /** Parameters: places, gaps in ms, reasons. */
  FAILED: `
UPDATE {schema}.outbox AS o
SET tries = o.tries + 1, next_try_at = clock_timestamp() + make_interval(secs => f.gap / 1000), last_error = f.reason
FROM unnest($1::bigint[], $2::float8[], $3::text[]) AS f (seq, gap, reason)
WHERE o.seq = f.seq`,

  /** Parameters: queue, after which place, most rows. */
  STUCK: `
SELECT seq::text AS seq, id, ordering_key, tries, last_error,
  (extract(epoch FROM created_at) * 1000)::float8 AS added_at,
  (extract(epoch FROM next_try_at) * 1000)::float8 AS next_try_at
FROM {schema}.outbox
WHERE aggregatetype = $1::text AND tries > 0 AND seq > $2::bigint ORDER BY outbox.seq LIMIT $3::int4`,

  /** What a relay is publishing it has locked: it is not stuck. Parameters: queue, ids. */
  RETRY: `
UPDATE {schema}.outbox SET next_try_at = clock_timestamp() WHERE seq = ANY (ARRAY(
  SELECT seq FROM {schema}.outbox WHERE aggregatetype = $1::text AND id = ANY ($2::text[]) AND tries > 0
  ORDER BY seq FOR UPDATE SKIP LOCKED))
RETURNING id`,

  /** Parameters: queue, ids, actor, reason. */
  DISCARD: `
WITH gone AS (
  DELETE FROM {schema}.outbox WHERE seq = ANY (ARRAY(
    SELECT seq FROM {schema}.outbox WHERE aggregatetype = $1::text AND id = ANY ($2::text[]) AND tries > 0
    ORDER BY seq FOR UPDATE SKIP LOCKED))
  RETURNING id
), kept AS (
  INSERT INTO {schema}.outbox_audit (queue, message_id, actor, reason)
  SELECT $1::text, id, $3::text, $4::text FROM gone
)
SELECT id FROM gone`,

  /** Parameters: queue, most rows. */
  AUDIT: `
SELECT (extract(epoch FROM at) * 1000)::float8 AS at, message_id, actor, reason FROM {schema}.outbox_audit
WHERE queue = $1::text ORDER BY seq DESC LIMIT $2::int4`,

  LAG: `
SELECT count(*)::float8 AS n,
  coalesce((SELECT extract(epoch FROM clock_timestamp() - created_at) * 1000
    FROM {schema}.outbox ORDER BY seq LIMIT 1), 0)::float8 AS age_ms
FROM {schema}.outbox`,
} as const

export type PostgresOutboxStatements = Readonly<
  Record<keyof typeof postgresOutboxStatements, string>
>
