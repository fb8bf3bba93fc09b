import { UNREAD_MS, unreadLimit } from '../../sql/pg-setting.ts'

/**
 * Every statement on messages in the hands of senders and workers, once. `now()` is the moment of the statement here
 * (each is its own transaction) and may be compared through an index; `clock_timestamp()` is the moment of reading.
 *
 * Statistics of a queue are always stale: minutes ago it was empty. Plans must not depend on them, so batches are
 * joined as `unnest((SELECT $1))`, whose length the planner does not see (it assumes ten rows and takes the primary
 * key), conditions that a partial index would satisfy are left out where another index is meant, and single rows are
 * asked for with ORDER BY and LIMIT. Seen otherwise: a scan over 100,000 dead entries for each ack.
 */

export const FIND_QUEUE = 'SELECT id FROM {schema}.queue WHERE name = $1'

/** Updates what is there first: an upsert alone would use up an id with each start of each instance. */
export const ENSURE_QUEUES = `
WITH spec AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[])
    AS spec (name, owner, max_depth, on_dead, ageing_ms)
), known AS (
  UPDATE {schema}.queue AS queue SET owner = spec.owner, max_depth = spec.max_depth,
    on_dead = spec.on_dead, ageing_ms = spec.ageing_ms
  FROM spec WHERE queue.name = spec.name
  RETURNING queue.name
)
INSERT INTO {schema}.queue (name, owner, max_depth, on_dead, ageing_ms)
SELECT name, owner, max_depth, on_dead, ageing_ms FROM spec
WHERE NOT EXISTS (SELECT 1 FROM {schema}.queue AS queue WHERE queue.name = spec.name)
ORDER BY name
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, max_depth = excluded.max_depth,
  on_dead = excluded.on_dead, ageing_ms = excluded.ageing_ms`

/**
 * A whole batch, in the order of its items. An id that is stored or dead is left out. The last parameter is that of LIMIT_LOCKS, for a
 * statement that is a transaction by itself; null changes nothing.
 */
export const STORE = `
INSERT INTO {schema}.message
  (queue_id, id, state, priority, ready_at, sent_at, idempotency_key, ordering_key, headers, body, fair_key, fair_weight)
SELECT $1::integer, item.id,
  CASE WHEN item.ready_at > cut.now OR item.delay_ms > 0 THEN 1 ELSE 0 END,
  item.priority,
  CASE WHEN item.ready_at > cut.now THEN item.ready_at
    ELSE cut.now + item.delay_ms * interval '1 millisecond' END,
  cut.now, item.idempotency_key, item.ordering_key, item.headers, item.body, item.fair_key, item.fair_weight
FROM (
    SELECT date_trunc('milliseconds', clock_timestamp()) AS now,
      CASE WHEN $10::text IS NOT NULL THEN set_config('lock_timeout', $10::text, true) END AS lock_ms
  ) AS cut,
  LATERAL (
    SELECT id, priority, delay_ms, to_timestamp(ready_ms / 1000) AS ready_at,
      idempotency_key, ordering_key, headers, body, fair_key, fair_weight, place
    FROM unnest($2::text[], $3::smallint[], $4::float8[], $5::float8[], $6::text[], $7::text[], $8::text[], $9::bytea[],
        $11::text[], $12::float8[])
      WITH ORDINALITY
      AS item (id, priority, delay_ms, ready_ms, idempotency_key, ordering_key, headers, body, fair_key, fair_weight,
        place)
  ) AS item
WHERE NOT EXISTS (SELECT 1 FROM {schema}.dead_letter WHERE queue_id = $1::integer) OR (
  SELECT 1 FROM {schema}.dead_letter AS dead WHERE dead.queue_id = $1::integer AND dead.id = item.id LIMIT 1) IS NULL
ORDER BY item.place
ON CONFLICT (queue_id, id) DO NOTHING
RETURNING id`

/** Parameter: ms as text. For the rest of this transaction; a wait that is longer fails with 55P03, and nothing was stored. */
export const LIMIT_LOCKS = `SELECT set_config('lock_timeout', $1::text, true)`

/** Keys in one order for all senders, so that no two of them wait for each other. A key whose window is over is free. */
export const REMEMBER = `
INSERT INTO {schema}.remembered_key AS known (queue_id, kind, key, fingerprint, message_id, expires_at)
SELECT $1::integer, kind, key, fingerprint, message_id, now() + window_ms * interval '1 millisecond'
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::float8[])
  AS given (kind, key, fingerprint, message_id, window_ms)
ORDER BY kind COLLATE "C", key COLLATE "C"
ON CONFLICT (queue_id, kind, key) DO UPDATE SET
  fingerprint = excluded.fingerprint, message_id = excluded.message_id, expires_at = excluded.expires_at
WHERE known.expires_at <= now()
RETURNING kind, key`
export const RECALL = `
SELECT known.kind, known.key, known.fingerprint, known.message_id
FROM unnest($2::text[], $3::text[]) AS given (kind, key)
JOIN {schema}.remembered_key AS known
  ON known.queue_id = $1::integer AND known.kind = given.kind AND known.key = given.key
WHERE known.expires_at > now()`
export const FORGET = `
DELETE FROM {schema}.remembered_key AS known
USING unnest($2::text[], $3::text[]) AS given (kind, key)
WHERE known.queue_id = $1::integer AND known.kind = given.kind AND known.key = given.key`
export const PRUNE_KEYS = `
DELETE FROM {schema}.remembered_key WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM {schema}.remembered_key WHERE expires_at <= now()
  ORDER BY expires_at LIMIT $1::integer FOR UPDATE SKIP LOCKED))`

export const NOTIFY = 'SELECT pg_notify($1, $2) IS NULL AS sent'

/** What waits for a moment and what the queue has, in one look; see `functions.ts`. */
export const TEND = 'SELECT * FROM {schema}.tend_queue($1::integer, $2::integer)'

/** Takes a batch with one new claim; see `ageing.ts`. An answer that nobody reads keeps it no longer than the lease would have. */
export const CLAIM: string = `
SELECT turn, seq, claim_id, id, priority, sent_at, deliveries, alone, counted, crashes, redrives, throttled_since,
  idempotency_key, ordering_key, headers, records, body, fair_key, fair_weight
FROM (SELECT ${unreadLimit(`greatest($3::float8, ${UNREAD_MS})`)} AS unread_ms) AS limits,
  {schema}.claim_in_turn($1::integer, $2::integer, $3::float8, $4::text)`

/**
 * Ends claims of which nothing is left, beside the statement that settled the last of them. The last parameter is that of LIMIT_LOCKS,
 * as it may be a transaction by itself; null changes nothing.
 */
export const ACK = `
WITH done AS (
  DELETE FROM {schema}.message AS message
  USING unnest((SELECT $1::bigint[]), (SELECT $2::bigint[])) AS held (seq, claim_id),
    (SELECT CASE WHEN $4::text IS NOT NULL THEN set_config('lock_timeout', $4::text, true) END AS lock_ms) AS limits
  WHERE message.seq = held.seq AND message.claim_id = held.claim_id
  RETURNING message.seq, message.claim_id
), ended AS (
  DELETE FROM {schema}.claim AS claim WHERE claim_id = ANY ($3::bigint[]) AND
    (SELECT count(*) FROM {schema}.message AS message WHERE message.claim_id = claim.claim_id AND message.state = 2)
    = (SELECT count(*) FROM done WHERE done.claim_id = claim.claim_id)
)
SELECT seq::float8 AS seq FROM done`

/** Only while the lease lasts by the server's clock at this moment: the effect's transaction hangs on it. */
export const ACK_IN_LEASE = `
DELETE FROM {schema}.message AS message
USING unnest((SELECT $1::bigint[]), (SELECT $2::bigint[])) AS held (seq, claim_id), {schema}.claim AS claim
WHERE message.seq = held.seq AND message.claim_id = held.claim_id
  AND claim.claim_id = message.claim_id AND claim.expires_at > clock_timestamp()
RETURNING message.seq::float8 AS seq`

export const RELEASE = `
UPDATE {schema}.message AS message
SET state = CASE WHEN held.state = 0 AND message.fair_key IS NOT NULL THEN -1 ELSE held.state END,
  place = CASE WHEN held.state = 0 AND message.fair_key IS NOT NULL
    THEN {schema}.fair_place(message.queue_id, message.priority, message.fair_key, message.fair_weight) END,
  ready_at = cut.now + held.delay_ms * interval '1 millisecond', claim_id = NULL,
  alone = held.alone, counted = held.counted, throttled_since = held.throttled_since, records = held.records
FROM unnest((SELECT $1::bigint[]), (SELECT $2::bigint[]), (SELECT $3::smallint[]), (SELECT $4::float8[]), (SELECT $5::boolean[]), (SELECT $6::bigint[]), (SELECT $7::bigint[]), (SELECT $8::text[]))
    AS held (seq, claim_id, state, delay_ms, alone, counted, throttled_since, records),
  (SELECT date_trunc('milliseconds', clock_timestamp()) AS now) AS cut
WHERE message.seq = held.seq AND message.claim_id = held.claim_id
RETURNING message.seq::float8 AS seq`

/** Leaves the queue and lands on the shelf in one statement. */
export const BURY = `
WITH gone AS (
  DELETE FROM {schema}.message AS message
  USING unnest((SELECT $1::bigint[]), (SELECT $2::bigint[]), (SELECT $3::text[]), (SELECT $4::text[]), (SELECT $5::bigint[]), (SELECT $6::bigint[]), (SELECT $7::text[]))
    AS held (seq, claim_id, error_class, reason, counted, throttled_since, records)
  WHERE message.seq = held.seq AND message.claim_id = held.claim_id
  RETURNING message.*, held.error_class, held.reason, held.counted AS counted_now,
    held.throttled_since AS throttled_since_now, held.records AS records_now
), shelved AS (
  INSERT INTO {schema}.dead_letter
    (queue_id, id, dead_at, error_class, reason, owner, sent_at, priority, counted, crashes, redrives,
     throttled_since, idempotency_key, ordering_key, headers, records, body, fair_key, fair_weight)
  SELECT queue_id, gone.id, date_trunc('milliseconds', clock_timestamp()), error_class, reason,
    (SELECT owner FROM {schema}.queue AS queue WHERE queue.id = queue_id), sent_at, priority, counted_now, crashes,
    redrives, throttled_since_now, idempotency_key, ordering_key, headers, records_now, body, fair_key, fair_weight
  FROM gone
  ON CONFLICT (queue_id, id) DO NOTHING
)
SELECT seq::float8 AS seq FROM gone`

/**
 * Parameters: queue, highest priority, how many, reason (null: they are gone). Each priority by itself: the index of the ready ones
 * then gives the oldest without a sort.
 */
export const SHED = `
WITH ready AS MATERIALIZED (
  SELECT waiting.seq FROM generate_series(0, $2::integer) AS level,
    LATERAL (
      SELECT seq FROM (
        SELECT seq FROM {schema}.message
        WHERE queue_id = $1::integer AND state = 0 AND priority = level::smallint AND ordering_key IS NULL
        ORDER BY seq LIMIT $3::integer FOR UPDATE SKIP LOCKED) AS plain
      UNION ALL
      SELECT seq FROM (
        SELECT seq FROM {schema}.message
        WHERE queue_id = $1::integer AND state = -1 AND priority = level::smallint AND ordering_key IS NULL
        ORDER BY ready_at LIMIT $3::integer FOR UPDATE SKIP LOCKED) AS fair
    ) AS waiting
  LIMIT $3::integer
), late AS MATERIALIZED (
  SELECT seq FROM {schema}.message
  WHERE queue_id = $1::integer AND state = 1 AND priority <= $2::integer AND NOT alone AND ordering_key IS NULL
  ORDER BY ready_at DESC LIMIT greatest(0, $3::integer - (SELECT count(*) FROM ready)::integer) FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM {schema}.message WHERE seq = ANY (ARRAY(SELECT seq FROM ready UNION ALL SELECT seq FROM late))
  RETURNING *
), shelved AS (
  INSERT INTO {schema}.dead_letter
    (queue_id, id, dead_at, error_class, reason, owner, sent_at, priority, counted, crashes, redrives,
     throttled_since, idempotency_key, ordering_key, headers, records, body, fair_key, fair_weight)
  SELECT queue_id, id, date_trunc('milliseconds', clock_timestamp()), 'permanent', $4::text,
    (SELECT owner FROM {schema}.queue AS queue WHERE queue.id = queue_id), sent_at, priority, counted, crashes,
    redrives, throttled_since, idempotency_key, ordering_key, headers, records, body, fair_key, fair_weight
  FROM gone WHERE $4::text IS NOT NULL
  ON CONFLICT (queue_id, id) DO NOTHING
)
SELECT count(*)::int4 AS n FROM gone`

/** One row for each batch that was received together; messages are only looked at. */
export const RENEW = `
WITH renewed AS (
  UPDATE {schema}.claim SET expires_at = clock_timestamp() + $4::float8 * interval '1 millisecond'
  WHERE claim_id = ANY ($3::bigint[])
  RETURNING claim_id
)
SELECT message.seq::float8 AS seq
FROM unnest((SELECT $1::bigint[]), (SELECT $2::bigint[])) AS held (seq, claim_id)
JOIN {schema}.message AS message ON message.seq = held.seq AND message.claim_id = held.claim_id
WHERE held.claim_id IN (SELECT claim_id FROM renewed)`

/** Part of a batch: it moves to a claim of its own, so that the lease of the rest runs out. */
export const RENEW_PART = `
WITH fresh AS (
  INSERT INTO {schema}.claim (queue_id, owner, expires_at)
  VALUES ($3::integer, $4::text, clock_timestamp() + $5::float8 * interval '1 millisecond')
  RETURNING claim_id
)
UPDATE {schema}.message AS message SET claim_id = (SELECT claim_id FROM fresh)
FROM unnest((SELECT $1::bigint[]), (SELECT $2::bigint[])) AS held (seq, claim_id)
WHERE message.seq = held.seq AND message.claim_id = held.claim_id
RETURNING message.seq::float8 AS seq, message.claim_id::float8 AS claim_id`

/** Claims of vanished holders. Two sweeps share the work, and neither waits. */
export const EXPIRED_CLAIMS = `
SELECT claim_id::float8 AS claim_id FROM {schema}.claim WHERE expires_at <= now()
ORDER BY expires_at LIMIT $1::integer FOR UPDATE SKIP LOCKED`
/** A message that somebody's transaction is just acking is left for later. */
export const MESSAGES_OF_CLAIMS = `
SELECT seq::float8 AS seq, queue_id, counted::float8 AS counted, crashes::float8 AS crashes,
  redrives::float8 AS redrives, throttled_since::float8 AS throttled_since, records,
  (date_part('epoch', clock_timestamp()) * 1000)::float8 AS now
FROM {schema}.message WHERE claim_id = ANY ($1::bigint[]) AND state = 2
LIMIT $2::integer FOR UPDATE SKIP LOCKED`
export const QUARANTINE = `
UPDATE {schema}.message AS message
SET state = 3, alone = true, claim_id = NULL, ready_at = date_trunc('milliseconds', now()),
  counted = held.counted, crashes = held.crashes, records = held.records
FROM unnest((SELECT $1::bigint[]), (SELECT $2::bigint[]), (SELECT $3::bigint[]), (SELECT $4::text[])) AS held (seq, counted, crashes, records)
WHERE message.seq = held.seq`
export const END_CLAIMS = `
DELETE FROM {schema}.claim AS claim WHERE claim_id = ANY ($1::bigint[]) AND NOT EXISTS (
  SELECT 1 FROM {schema}.message AS message WHERE message.claim_id = claim.claim_id AND message.state = 2)`

/** Says which database a connection is on without touching a table that might not be there: that would end the transaction. */
export const IDENTITY = `
SELECT date_part('epoch', pg_postmaster_start_time())::text || ':' || t.oid::text || ':' ||
  (SELECT oid::text FROM pg_catalog.pg_database WHERE datname = current_database()) AS identity
FROM pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = $1 AND t.relname = 'message'`

export const SAVEPOINT = 'SAVEPOINT millrace_batch'
export const ROLLBACK_TO_SAVEPOINT = 'ROLLBACK TO SAVEPOINT millrace_batch'
export const RELEASE_SAVEPOINT = 'RELEASE SAVEPOINT millrace_batch'
