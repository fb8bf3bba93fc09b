/** Every statement behind `browse` and `shelf`, once. */

/** The oldest of each priority are looked at, not all: a backlog of millions must not make this slow. */
export const GAUGE = `
SELECT queue.paused,
  (SELECT count(*) FROM {schema}.message WHERE queue_id = queue.id AND state = 0)::float8 AS ready,
  (SELECT count(*) FROM {schema}.message WHERE queue_id = queue.id AND state = -1)::float8 AS fair,
  (SELECT count(*) FROM {schema}.message WHERE queue_id = queue.id AND state = 3)::float8 AS quarantined,
  (SELECT count(*) FROM {schema}.message WHERE queue_id = queue.id AND state = 4)::float8 AS behind,
  (SELECT count(*) FROM {schema}.message WHERE queue_id = queue.id AND state = 1 AND ready_at <= now())::float8 AS due,
  (SELECT count(*) FROM {schema}.message WHERE queue_id = queue.id AND state = 1 AND ready_at > now())::float8
    AS scheduled,
  (SELECT count(*) FROM {schema}.message WHERE queue_id = queue.id AND state = 2)::float8 AS in_flight,
  (SELECT count(*) FROM {schema}.dead_letter WHERE queue_id = queue.id)::float8 AS dead,
  (date_part('epoch', clock_timestamp() - least(
    (SELECT min(ready_at) FROM {schema}.message WHERE queue_id = queue.id AND state = 3),
    (SELECT min(ready_at) FROM {schema}.message WHERE queue_id = queue.id AND state = 1 AND ready_at <= now()),
    (SELECT min(oldest.ready_at) FROM generate_series(0, 9) AS level, LATERAL (
      SELECT ready_at FROM {schema}.message
      WHERE queue_id = queue.id AND state = 0 AND priority = level ORDER BY seq LIMIT 100) AS oldest),
    (SELECT min(oldest.ready_at) FROM generate_series(0, 9) AS level, LATERAL (
      SELECT ready_at FROM {schema}.message
      WHERE queue_id = queue.id AND state = -1 AND priority = level ORDER BY ready_at LIMIT 1) AS oldest)
  )) * 1000)::float8 AS age_ms
FROM {schema}.queue AS queue WHERE queue.id = $1::integer`
export const GET_MESSAGE = `
SELECT id, priority::int4 AS priority, state::int4 AS state,
  (date_part('epoch', sent_at) * 1000)::float8 AS sent_at,
  (date_part('epoch', ready_at) * 1000)::float8 AS ready_at,
  ready_at > clock_timestamp() AS waits,
  counted::float8 AS counted, crashes::float8 AS crashes, redrives::float8 AS redrives,
  throttled_since::float8 AS throttled_since, idempotency_key, ordering_key, headers, records, body, fair_key, fair_weight
FROM {schema}.message WHERE queue_id = $1::integer AND id = $2`
export const CANCEL =
  'DELETE FROM {schema}.message WHERE queue_id = $1::integer AND id = $2 RETURNING 1 AS gone'
export const SET_PAUSED = 'UPDATE {schema}.queue SET paused = $2::boolean WHERE id = $1::integer'
/** Heads lock their keys first, in one order; those behind (state 4) need none. */
export const PURGE = `
WITH chosen AS MATERIALIZED (
  SELECT ctid AS place, ordering_key FROM {schema}.message
  WHERE queue_id = $1::integer AND state = $2::smallint
  LIMIT $3::integer FOR UPDATE SKIP LOCKED
), locked AS MATERIALIZED (
  SELECT count({schema}.lock_key($1::integer, key)) AS halted FROM (
    SELECT DISTINCT ordering_key AS key FROM chosen
    WHERE ordering_key IS NOT NULL AND $2::smallint <> 4 ORDER BY ordering_key) AS ordered
), gone AS (
  DELETE FROM {schema}.message
  WHERE ctid = ANY (ARRAY(SELECT place FROM chosen)) AND (SELECT halted FROM locked) IS NOT NULL
  RETURNING 1
)
SELECT count(*)::int4 AS n FROM gone`

/**
 * The order names its columns with their table, here and in every statement: a bare `dead_at` would be the number that is
 * selected under this name, and each page would sort all letters.
 *
 * $6: bytes of bodies in all; rows behind them come without theirs. The length of a body is known without reading it.
 */
export const LIST_DEAD = `
SELECT id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, reason, owner,
  (date_part('epoch', sent_at) * 1000)::float8 AS sent_at, priority::int4 AS priority,
  counted::float8 AS counted, crashes::float8 AS crashes, redrives::float8 AS redrives,
  throttled_since::float8 AS throttled_since, idempotency_key, ordering_key, headers, records, fair_key, fair_weight,
  CASE WHEN sum(octet_length(body)) OVER newest <= greatest($6::bigint, octet_length(body)) THEN body END AS body
FROM (
  SELECT * FROM {schema}.dead_letter AS dead
  WHERE queue_id = $1::integer AND dead_at <= to_timestamp($2::float8 / 1000)
    AND (dead_at, id) < (to_timestamp($3::float8 / 1000), $4::text)
  ORDER BY dead.dead_at DESC, dead.id DESC LIMIT $5::integer) AS page
WINDOW newest AS (ORDER BY page.dead_at DESC, page.id DESC)
ORDER BY page.dead_at DESC, page.id DESC`
export const LIST_DEAD_OF_CLASS = `
SELECT id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, reason, owner,
  (date_part('epoch', sent_at) * 1000)::float8 AS sent_at, priority::int4 AS priority,
  counted::float8 AS counted, crashes::float8 AS crashes, redrives::float8 AS redrives,
  throttled_since::float8 AS throttled_since, idempotency_key, ordering_key, headers, records, fair_key, fair_weight,
  CASE WHEN sum(octet_length(body)) OVER newest <= greatest($6::bigint, octet_length(body)) THEN body END AS body
FROM (
  SELECT * FROM {schema}.dead_letter AS dead
  WHERE queue_id = $1::integer AND error_class = $7::text AND dead_at <= to_timestamp($2::float8 / 1000)
    AND (dead_at, id) < (to_timestamp($3::float8 / 1000), $4::text)
  ORDER BY dead.dead_at DESC, dead.id DESC LIMIT $5::integer) AS page
WINDOW newest AS (ORDER BY page.dead_at DESC, page.id DESC)
ORDER BY page.dead_at DESC, page.id DESC`
/** Without the bodies. */
export const LIST_DEAD_BARE = `
SELECT id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, reason, owner,
  (date_part('epoch', sent_at) * 1000)::float8 AS sent_at, priority::int4 AS priority,
  counted::float8 AS counted, crashes::float8 AS crashes, redrives::float8 AS redrives,
  throttled_since::float8 AS throttled_since, idempotency_key, ordering_key, headers, records, fair_key, fair_weight
FROM {schema}.dead_letter AS dead
WHERE queue_id = $1::integer AND dead_at <= to_timestamp($2::float8 / 1000)
  AND (dead_at, id) < (to_timestamp($3::float8 / 1000), $4::text)
ORDER BY dead.dead_at DESC, dead.id DESC LIMIT $5::integer`
export const LIST_DEAD_BARE_OF_CLASS = `
SELECT id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, reason, owner,
  (date_part('epoch', sent_at) * 1000)::float8 AS sent_at, priority::int4 AS priority,
  counted::float8 AS counted, crashes::float8 AS crashes, redrives::float8 AS redrives,
  throttled_since::float8 AS throttled_since, idempotency_key, ordering_key, headers, records, fair_key, fair_weight
FROM {schema}.dead_letter AS dead
WHERE queue_id = $1::integer AND error_class = $6::text AND dead_at <= to_timestamp($2::float8 / 1000)
  AND (dead_at, id) < (to_timestamp($3::float8 / 1000), $4::text)
ORDER BY dead.dead_at DESC, dead.id DESC LIMIT $5::integer`
export const COUNT_DEAD = `
SELECT count(*)::float8 AS n FROM {schema}.dead_letter AS dead
WHERE queue_id = $1::integer AND dead_at <= to_timestamp($2::float8 / 1000)`
export const COUNT_DEAD_OF_CLASS = `
SELECT count(*)::float8 AS n FROM {schema}.dead_letter
WHERE queue_id = $1::integer AND error_class = $3::text AND dead_at <= to_timestamp($2::float8 / 1000)`
export const GET_DEAD = `
SELECT id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, reason, owner,
  (date_part('epoch', sent_at) * 1000)::float8 AS sent_at, priority::int4 AS priority,
  counted::float8 AS counted, crashes::float8 AS crashes, redrives::float8 AS redrives,
  throttled_since::float8 AS throttled_since, idempotency_key, ordering_key, headers, records, body, fair_key, fair_weight
FROM {schema}.dead_letter WHERE queue_id = $1::integer AND id = $2`

/** Off the shelf, into the queue and on record in one statement. An id that is stored again meanwhile stays dead. */
export const REDRIVE = `
WITH gone AS (
  DELETE FROM {schema}.dead_letter AS dead USING unnest($2::text[]) AS wanted (id)
  WHERE dead.queue_id = $1::integer AND dead.id = wanted.id AND NOT EXISTS (
    SELECT 1 FROM {schema}.message AS message WHERE message.queue_id = $1::integer AND message.id = wanted.id)
  RETURNING dead.*
), moved AS (
  INSERT INTO {schema}.message
    (queue_id, id, state, priority, ready_at, sent_at, redrives, idempotency_key, ordering_key, headers, records, body,
     fair_key, fair_weight)
  SELECT queue_id, id, 0, priority, date_trunc('milliseconds', now()), sent_at,
    least(redrives, 9223372036854775806) + 1, idempotency_key, ordering_key, headers, records, body, fair_key, fair_weight
  FROM gone ORDER BY dead_at, id
  ON CONFLICT (queue_id, id) DO NOTHING
), noted AS (
  INSERT INTO {schema}.audit (queue_id, message_id, at, act, actor, reason)
  SELECT queue_id, id, now(), 'redrive', $3::text, $4::text FROM gone
)
SELECT id FROM gone`
/** Locks the keys of the letters first, in the one order of all (LOCK_KEYS_OF_DEAD), and all in one statement. */
export const DISCARD = `
WITH locked AS MATERIALIZED (
  SELECT 1 FROM {schema}.ordering_key AS known
  WHERE known.queue_id = $1::integer AND known.key = ANY (ARRAY(
    SELECT dead.ordering_key FROM {schema}.dead_letter AS dead
    WHERE dead.queue_id = $1::integer AND dead.id = ANY ($2::text[]) AND dead.ordering_key IS NOT NULL))
  ORDER BY known.key FOR UPDATE
), gone AS (
  DELETE FROM {schema}.dead_letter AS dead USING unnest($2::text[]) AS wanted (id)
  WHERE dead.queue_id = $1::integer AND dead.id = wanted.id AND (SELECT count(*) FROM locked) IS NOT NULL
  RETURNING dead.queue_id, dead.id
), noted AS (
  INSERT INTO {schema}.audit (queue_id, message_id, at, act, actor, reason)
  SELECT queue_id, id, now(), 'discard', $3::text, $4::text FROM gone
)
SELECT id FROM gone`
export const LIST_AUDIT = `
SELECT message_id, (date_part('epoch', at) * 1000)::float8 AS at, act, actor, reason
FROM {schema}.audit WHERE queue_id = $1::integer ORDER BY seq DESC LIMIT $2::integer`
