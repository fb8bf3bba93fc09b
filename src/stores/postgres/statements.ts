/**
 * Every statement of the store; `{schema}` is replaced once, at connect. Who waits for locks takes them in the order of the
 * key, and who does not (take, prune) skips what is locked, so that no two ever wait for each other.
 */

/** Parameters: queue, places, ids, kinds, keys, fingerprints, hold in ms. */
export const RESERVE = `
SELECT place, reason, holder FROM {schema}.store_reserve(
  $1::text, $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8)`
/** Parameters: queue, ids, kinds, keys, fingerprints, windows in ms. */
export const CONFIRM = `
INSERT INTO {schema}.store_key AS held (queue, kind, key, message_id, fingerprint, confirmed, expires_at)
SELECT $1::text, kind, key, id, fingerprint, true, now() + window_ms * interval '1 millisecond'
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::float8[]) AS sure (id, kind, key, fingerprint, window_ms)
ORDER BY kind COLLATE "C", key COLLATE "C"
ON CONFLICT (queue, kind, key) DO UPDATE SET message_id = excluded.message_id, fingerprint = excluded.fingerprint,
  confirmed = true, expires_at = excluded.expires_at
WHERE NOT held.confirmed OR held.expires_at <= now()`
/** Parameters: queue, ids, kinds, keys. */
export const FREE = `
WITH mine AS (
  SELECT held.kind, held.key, held.message_id
  FROM unnest($2::text[], $3::text[], $4::text[]) AS freed (id, kind, key)
  JOIN {schema}.store_key AS held ON held.queue = $1::text AND held.kind = freed.kind AND held.key = freed.key
    AND held.message_id = freed.id AND NOT held.confirmed
  ORDER BY held.kind, held.key FOR UPDATE OF held
)
DELETE FROM {schema}.store_key AS held USING mine
WHERE held.queue = $1::text AND held.kind = mine.kind AND held.key = mine.key
  AND held.message_id = mine.message_id AND NOT held.confirmed`

/** Parameters: queue, ids, delays in ms, messages, bodies. A taken one is put anew, in a new place. */
export const PUT_DELAYED = `
INSERT INTO {schema}.store_delayed AS there (queue, id, due_at, open_at, message, body)
SELECT $1::text, id, due_at, due_at, message, body
FROM unnest($2::text[], $3::float8[], $4::text[], $5::bytea[]) AS put (id, delay_ms, message, body),
  LATERAL (SELECT date_trunc('milliseconds', now() + delay_ms * interval '1 millisecond')) AS due (due_at)
ORDER BY id COLLATE "C"
ON CONFLICT (queue, id) DO UPDATE SET seq = excluded.seq, due_at = excluded.due_at, open_at = excluded.open_at,
  taken = false, message = excluded.message, body = excluded.body
WHERE there.taken`
/** Parameters: queue, most, lease in ms. */
export const TAKE_DELAYED = `
WITH open AS (
  SELECT seq FROM {schema}.store_delayed WHERE queue = $1::text AND open_at <= now()
  ORDER BY open_at, seq LIMIT $2::integer FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.store_delayed AS taken
SET open_at = now() + $3::float8 * interval '1 millisecond', taken = true
FROM open WHERE taken.seq = open.seq
RETURNING taken.seq::text AS seq, taken.id, (date_part('epoch', taken.due_at) * 1000)::float8 AS due_at,
  taken.message, taken.body`
/** Parameters: queue, places. */
export const REMOVE_SENT = `
WITH gone AS (
  SELECT there.seq FROM unnest($2::bigint[]) AS sent (seq)
  JOIN {schema}.store_delayed AS there ON there.seq = sent.seq AND there.queue = $1::text
  ORDER BY there.id FOR UPDATE OF there
)
DELETE FROM {schema}.store_delayed AS there USING gone WHERE there.seq = gone.seq`
/** Parameters: queue, ids. */
export const REMOVE_DELAYED = `
WITH gone AS (
  SELECT there.id FROM unnest($2::text[]) AS wanted (id)
  JOIN {schema}.store_delayed AS there ON there.queue = $1::text AND there.id = wanted.id
  ORDER BY there.id FOR UPDATE OF there
)
DELETE FROM {schema}.store_delayed AS there USING gone WHERE there.queue = $1::text AND there.id = gone.id
RETURNING there.id`
export const GET_DELAYED = `
SELECT id, (date_part('epoch', due_at) * 1000)::float8 AS due_at, message, body
FROM {schema}.store_delayed WHERE queue = $1::text AND id = $2::text`
export const COUNT_DELAYED =
  'SELECT count(*)::float8 AS n FROM {schema}.store_delayed WHERE queue = $1::text'
export const NEXT_OPEN = `
SELECT greatest(0, ceil(date_part('epoch', min(open_at) - clock_timestamp()) * 1000))::float8 AS ms,
  min(open_at) IS NULL AS none
FROM {schema}.store_delayed WHERE queue = $1::text`

/** Parameters: queues, ids, classes, letters, messages, bodies. */
export const PUT_LETTERS = `
INSERT INTO {schema}.store_dead_letter AS there (queue, id, dead_at, error_class, letter, message, body)
SELECT queue, id, date_trunc('milliseconds', now()), error_class, letter, message, body
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[])
  AS put (queue, id, error_class, letter, message, body)
ORDER BY queue COLLATE "C", id COLLATE "C"
ON CONFLICT (queue, id) DO UPDATE SET
  dead_at = greatest(excluded.dead_at, there.dead_at + interval '1 millisecond'),
  error_class = excluded.error_class, letter = excluded.letter, message = excluded.message, body = excluded.body`
/**
 * Parameters: queue, dead before, place (dead at, id), most, bytes of bodies in all, class. Rows behind these bytes come without their
 * bodies; the length of one is known without reading it. A bare `dead_at` in the order would be the number that is selected: a sort of all.
 */
export const LIST_LETTERS = `
SELECT queue, id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, letter, message,
  CASE WHEN sum(octet_length(body)) OVER newest <= greatest($6::bigint, octet_length(body)) THEN body END AS body
FROM (
  SELECT * FROM {schema}.store_dead_letter AS dead
  WHERE queue = $1::text AND dead_at <= to_timestamp($2::float8 / 1000)
    AND (dead_at, id) < (to_timestamp($3::float8 / 1000), $4::text)
  ORDER BY dead.dead_at DESC, dead.id DESC LIMIT $5::integer) AS page
WINDOW newest AS (ORDER BY page.dead_at DESC, page.id DESC)
ORDER BY page.dead_at DESC, page.id DESC`
export const LIST_LETTERS_OF_CLASS = `
SELECT queue, id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, letter, message,
  CASE WHEN sum(octet_length(body)) OVER newest <= greatest($6::bigint, octet_length(body)) THEN body END AS body
FROM (
  SELECT * FROM {schema}.store_dead_letter AS dead
  WHERE queue = $1::text AND error_class = $7::text AND dead_at <= to_timestamp($2::float8 / 1000)
    AND (dead_at, id) < (to_timestamp($3::float8 / 1000), $4::text)
  ORDER BY dead.dead_at DESC, dead.id DESC LIMIT $5::integer) AS page
WINDOW newest AS (ORDER BY page.dead_at DESC, page.id DESC)
ORDER BY page.dead_at DESC, page.id DESC`
/** Without the bodies. Parameters: queue, dead before, place (dead at, id), most, class. */
export const LIST_LETTERS_BARE = `
SELECT queue, id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, letter, message
FROM {schema}.store_dead_letter AS dead
WHERE queue = $1::text AND dead_at <= to_timestamp($2::float8 / 1000)
  AND (dead_at, id) < (to_timestamp($3::float8 / 1000), $4::text)
ORDER BY dead.dead_at DESC, dead.id DESC LIMIT $5::integer`
export const LIST_LETTERS_BARE_OF_CLASS = `
SELECT queue, id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, letter, message
FROM {schema}.store_dead_letter AS dead
WHERE queue = $1::text AND error_class = $6::text AND dead_at <= to_timestamp($2::float8 / 1000)
  AND (dead_at, id) < (to_timestamp($3::float8 / 1000), $4::text)
ORDER BY dead.dead_at DESC, dead.id DESC LIMIT $5::integer`
export const GET_LETTER = `
SELECT queue, id, (date_part('epoch', dead_at) * 1000)::float8 AS dead_at, error_class, letter, message, body
FROM {schema}.store_dead_letter WHERE queue = $1::text AND id = $2::text`
export const COUNT_LETTERS = `
SELECT count(*)::float8 AS n FROM {schema}.store_dead_letter
WHERE queue = $1::text AND dead_at <= to_timestamp($2::float8 / 1000)`
export const COUNT_LETTERS_OF_CLASS = `
SELECT count(*)::float8 AS n FROM {schema}.store_dead_letter
WHERE queue = $1::text AND error_class = $3::text AND dead_at <= to_timestamp($2::float8 / 1000)`
/** Parameters: queue, ids, deaths in epoch ms, actor, reason. What was put anew since has another moment of death. */
export const REDRIVEN = `
WITH known AS (
  SELECT there.id, sent.dead_at FROM unnest($2::text[], $3::float8[]) AS sent (id, dead_at)
  JOIN {schema}.store_dead_letter AS there ON there.queue = $1::text AND there.id = sent.id
  ORDER BY there.id FOR UPDATE OF there
), gone AS (
  DELETE FROM {schema}.store_dead_letter AS there USING known
  WHERE there.queue = $1::text AND there.id = known.id
    AND round(date_part('epoch', there.dead_at) * 1000) = known.dead_at
), noted AS (
  INSERT INTO {schema}.store_audit (queue, message_id, at, act, actor, reason)
  SELECT $1::text, id, now(), 'redrive', $4::text, $5::text FROM known
)
SELECT id FROM known`
/** Parameters: queue, ids, actor, reason. */
export const DISCARD = `
WITH known AS (
  SELECT there.id FROM unnest($2::text[]) AS wanted (id)
  JOIN {schema}.store_dead_letter AS there ON there.queue = $1::text AND there.id = wanted.id
  ORDER BY there.id FOR UPDATE OF there
), gone AS (
  DELETE FROM {schema}.store_dead_letter AS there USING known
  WHERE there.queue = $1::text AND there.id = known.id
), noted AS (
  INSERT INTO {schema}.store_audit (queue, message_id, at, act, actor, reason)
  SELECT $1::text, id, now(), 'discard', $3::text, $4::text FROM known
)
SELECT id FROM known`
export const LIST_AUDIT = `
SELECT queue, message_id, (date_part('epoch', at) * 1000)::float8 AS at, act, actor, reason
FROM {schema}.store_audit WHERE queue = $1::text ORDER BY seq DESC LIMIT $2::integer`

/** Parameters: queue, ids. */
export const READ_ENTRIES = `
SELECT wanted.place::integer AS place, entry.history, entry.runner
FROM unnest($2::text[]) WITH ORDINALITY AS wanted (id, place)
JOIN {schema}.store_journal AS entry ON entry.queue = $1::text AND entry.id = wanted.id
WHERE entry.expires_at > now()`
/** Parameters: queue, ids, histories, runners, keep in ms. */
export const WRITE_ENTRIES = `
INSERT INTO {schema}.store_journal (queue, id, history, runner, expires_at)
SELECT $1::text, id, history, runner, now() + $5::float8 * interval '1 millisecond'
FROM unnest($2::text[], $3::text[], $4::text[]) AS written (id, history, runner)
ORDER BY id COLLATE "C"
ON CONFLICT (queue, id) DO UPDATE SET
  history = excluded.history, runner = excluded.runner, expires_at = excluded.expires_at`
/** Parameters: queue, ids. */
export const FORGET_ENTRIES = `
WITH gone AS (
  SELECT entry.id FROM unnest($2::text[]) AS forgotten (id)
  JOIN {schema}.store_journal AS entry ON entry.queue = $1::text AND entry.id = forgotten.id
  ORDER BY entry.id FOR UPDATE OF entry
)
DELETE FROM {schema}.store_journal AS entry USING gone WHERE entry.queue = $1::text AND entry.id = gone.id`

/** Parameters: name, holder, lease in ms. No row: another has it. */
export const ACQUIRE_LEASE = `
INSERT INTO {schema}.store_lease AS held (name, holder, fence, expires_at)
VALUES ($1::text, $2::text, nextval('{schema}.store_fence'), now() + $3::float8 * interval '1 millisecond')
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
  fence = CASE WHEN held.expires_at > now() THEN held.fence ELSE nextval('{schema}.store_fence') END
WHERE held.holder = excluded.holder OR held.expires_at <= now()
RETURNING held.fence::text AS fence`
/** Parameters: name, holder, fence, lease in ms. */
export const RENEW_LEASE = `
UPDATE {schema}.store_lease SET expires_at = now() + $4::float8 * interval '1 millisecond'
WHERE name = $1::text AND holder = $2::text AND fence = $3::bigint AND expires_at > now()
RETURNING 1::integer AS renewed`
/** The row stays for a while, see \`PRUNES\`. */
export const RELEASE_LEASE = `
UPDATE {schema}.store_lease SET expires_at = now()
WHERE name = $1::text AND holder = $2::text AND fence = $3::bigint AND expires_at > now()`

/** Parameters: pool, max, max per key, holders, keys, lease in ms. A row for each, in their order. */
export const ACQUIRE_SLOTS = `
SELECT fence::text AS fence, full_of FROM {schema}.store_acquire_slots($1::text, $2::integer, $3::integer,
  $4::text[], $5::text[], $6::float8) WITH ORDINALITY ORDER BY ordinality`
/** Parameters: pool, holders, fences, lease in ms. */
export const RENEW_SLOTS = `
SELECT holder, fence::text AS fence
FROM {schema}.store_renew_slots($1::text, $2::text[], $3::bigint[], $4::float8)`
/** Parameters: pool, holders, fences. */
export const RELEASE_SLOTS =
  'SELECT {schema}.store_release_slots($1::text, $2::text[], $3::bigint[])'
/** Parameters: pool, most keys. The first row is the pool. */
export const COUNT_SLOTS = `
WITH held AS MATERIALIZED (
  SELECT key FROM {schema}.store_slot WHERE pool = $1::text AND expires_at > now()
), keys AS (
  SELECT key, count(*)::integer AS n FROM held WHERE key IS NOT NULL GROUP BY key ORDER BY n DESC, key LIMIT $2::integer
)
SELECT NULL AS key, count(*)::integer AS n FROM held
UNION ALL SELECT key, n FROM keys
ORDER BY n DESC, key NULLS FIRST`
/** Parameters: name, capacity, tokens per ms, tokens. */
export const TAKE_TOKENS =
  'SELECT {schema}.store_take_tokens($1::text, $2::float8, $3::float8, $4::float8) AS retry_ms'

/** Parameters: name, delta, keep in ms. Stops at the numbers that a double holds exactly. */
export const ADD_TO_COUNTER = `
INSERT INTO {schema}.store_counter AS there (name, value, expires_at)
VALUES ($1::text, $2::bigint, now() + $3::float8 * interval '1 millisecond')
ON CONFLICT (name) DO UPDATE SET
  value = CASE WHEN there.expires_at <= now() THEN excluded.value
    ELSE greatest(-9007199254740991, least(9007199254740991, there.value + excluded.value)) END,
  expires_at = CASE WHEN there.expires_at <= now() THEN excluded.expires_at ELSE there.expires_at END
RETURNING there.value::float8 AS value`
export const READ_COUNTER = `
SELECT value::float8 AS value FROM {schema}.store_counter WHERE name = $1::text AND expires_at > now()`

export const READ_STATE =
  'SELECT value, version::text AS version FROM {schema}.store_state WHERE name = $1::text'
/** Parameters: name, value. */
export const MAKE_STATE = `
INSERT INTO {schema}.store_state (name, value, version) VALUES ($1::text, $2::text, 1)
ON CONFLICT (name) DO NOTHING RETURNING version::text AS version`
/** Parameters: name, value, version. */
export const SWAP_STATE = `
UPDATE {schema}.store_state SET value = $2::text, version = version + 1
WHERE name = $1::text AND version = $3::bigint RETURNING version::text AS version`

export const PRUNE_KEYS = `
WITH gone AS (
  DELETE FROM {schema}.store_key WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.store_key WHERE expires_at <= now()
    ORDER BY expires_at LIMIT $1::integer FOR UPDATE SKIP LOCKED)) RETURNING 1
)
SELECT count(*)::integer AS n FROM gone`
export const PRUNE_JOURNAL = `
WITH gone AS (
  DELETE FROM {schema}.store_journal WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.store_journal WHERE expires_at <= now()
    ORDER BY expires_at LIMIT $1::integer FOR UPDATE SKIP LOCKED)) RETURNING 1
)
SELECT count(*)::integer AS n FROM gone`
/**
 * Only a day after their end: who has drawn a fence for a name and has not written it yet must find the row of a younger one.
 */
export const PRUNE_LEASES = `
WITH gone AS (
  DELETE FROM {schema}.store_lease WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.store_lease WHERE expires_at <= now() - interval '1 day'
    LIMIT $1::integer FOR UPDATE SKIP LOCKED)) RETURNING 1
)
SELECT count(*)::integer AS n FROM gone`
export const PRUNE_SLOTS = `
WITH gone AS (
  DELETE FROM {schema}.store_slot WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.store_slot WHERE expires_at <= now()
    LIMIT $1::integer FOR UPDATE SKIP LOCKED)) RETURNING 1
)
SELECT count(*)::integer AS n FROM gone`
export const PRUNE_BUCKETS = `
WITH gone AS (
  DELETE FROM {schema}.store_bucket WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.store_bucket WHERE full_at <= now()
    LIMIT $1::integer FOR UPDATE SKIP LOCKED)) RETURNING 1
)
SELECT count(*)::integer AS n FROM gone`
export const PRUNE_COUNTERS = `
WITH gone AS (
  DELETE FROM {schema}.store_counter WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.store_counter WHERE expires_at <= now()
    LIMIT $1::integer FOR UPDATE SKIP LOCKED)) RETURNING 1
)
SELECT count(*)::integer AS n FROM gone`
