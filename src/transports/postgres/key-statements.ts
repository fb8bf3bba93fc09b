/** What is asked and said of ordering keys beside the triggers of `ordered-keys.ts`, once. */

/** Before a statement that sends to several keys: all lock them in one order, so that no two wait for each other. */
export const LOCK_KEYS = `
SELECT count({schema}.lock_key($1::integer, key)) AS halted
FROM (SELECT key FROM unnest($2::text[]) AS wanted (key) ORDER BY key COLLATE "C") AS ordered`

/**
 * The same before messages of several keys end. It makes no row: nothing would remove it where the message is gone already. The last
 * parameter is that of LIMIT_LOCKS; null changes nothing.
 */
export const LOCK_KNOWN_KEYS = `
SELECT 1 AS locked, limits.lock_ms FROM {schema}.ordering_key AS known,
  (SELECT CASE WHEN $3::text IS NOT NULL THEN set_config('lock_timeout', $3::text, true) END AS lock_ms) AS limits
WHERE known.queue_id = $1::integer AND known.key = ANY ($2::text[]) ORDER BY known.key FOR UPDATE OF known`

/** Locks those that nobody else holds, without a wait; answers the others. */
export const LOCK_FREE_KEYS = `
WITH free AS MATERIALIZED (
  SELECT key FROM {schema}.ordering_key
  WHERE queue_id = $1::integer AND key = ANY ($2::text[]) ORDER BY key FOR UPDATE SKIP LOCKED
)
SELECT known.key FROM {schema}.ordering_key AS known
WHERE known.queue_id = $1::integer AND known.key = ANY ($2::text[]) AND known.key NOT IN (SELECT key FROM free)`

/** The same before an act on dead letters, also of one: whoever had the letter first and then waited for its key would close a circle. */
export const LOCK_KEYS_OF_DEAD = `
SELECT 1 AS locked FROM {schema}.ordering_key AS known
WHERE known.queue_id = $1::integer AND known.key = ANY (ARRAY(
  SELECT dead.ordering_key FROM {schema}.dead_letter AS dead
  WHERE dead.queue_id = $1::integer AND dead.id = ANY ($2::text[]) AND dead.ordering_key IS NOT NULL))
ORDER BY known.key FOR UPDATE`

export const LIST_HALTED = `
SELECT key, halted_by, (date_part('epoch', halted_at) * 1000)::float8 AS halted_at,
  (SELECT count(*) FROM {schema}.message AS waiting
    WHERE waiting.queue_id = halted.queue_id AND waiting.ordering_key = halted.key)::float8 AS waiting
FROM {schema}.ordering_key AS halted
WHERE queue_id = $1::integer AND halted_by IS NOT NULL AND key > $2::text ORDER BY key LIMIT $3::integer`

export const GET_HALTED = `
SELECT key, halted_by, (date_part('epoch', halted_at) * 1000)::float8 AS halted_at,
  (SELECT count(*) FROM {schema}.message AS waiting
    WHERE waiting.queue_id = halted.queue_id AND waiting.ordering_key = halted.key)::float8 AS waiting
FROM {schema}.ordering_key AS halted
WHERE queue_id = $1::integer AND key = $2::text AND halted_by IS NOT NULL`

export const SKIP_KEYS =
  'SELECT key FROM {schema}.skip_keys($1::integer, $2::text[], $3::text, $4::text) AS key'
