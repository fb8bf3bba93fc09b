/**
 * What needs more than one statement and must not need more than one round trip. Each statement of a function sees what
 * others committed while the one before it waited for a lock (READ COMMITTED, volatile functions).
 */

/**
 * Takes the keys of messages, no two of which share one; answers those that cannot have theirs, with the reason: 1 and 3
 * duplicate, 2 conflict, 4 held (see `reservationOf`). The first statement makes missing rows, as ended ones, and locks all in
 * one order.
 */
const RESERVE = `
CREATE FUNCTION {schema}.store_reserve(a_queue text, a_places integer[], a_ids text[], a_kinds text[], a_keys text[],
  a_fingerprints text[], a_hold_ms float8)
RETURNS TABLE (place integer, reason integer, holder text)
LANGUAGE plpgsql
AS $body$
#variable_conflict use_column
DECLARE
  v_now timestamptz;
BEGIN
INSERT INTO {schema}.store_key AS held (queue, kind, key, message_id, confirmed, expires_at)
SELECT a_queue, kind, key, '', false, '-infinity' FROM unnest(a_kinds, a_keys) AS wanted (kind, key)
ORDER BY kind COLLATE "C", key COLLATE "C"
ON CONFLICT (queue, kind, key) DO UPDATE SET queue = excluded.queue;
v_now := clock_timestamp();
RETURN QUERY
WITH wanted AS MATERIALIZED (
  SELECT * FROM unnest(a_places, a_ids, a_kinds, a_keys, a_fingerprints)
    WITH ORDINALITY AS wanted (place, id, kind, key, fingerprint, at)
), standing AS (
  SELECT wanted.place, wanted.at, held.message_id AS holder, CASE
    WHEN held.confirmed AND held.message_id = wanted.id THEN 1
    WHEN held.confirmed AND held.kind = 'idempotency' AND held.fingerprint IS DISTINCT FROM wanted.fingerprint THEN 2
    WHEN held.confirmed THEN 3
    ELSE 4 END AS reason
  FROM wanted JOIN {schema}.store_key AS held
    ON held.queue = a_queue AND held.kind = wanted.kind AND held.key = wanted.key
  WHERE held.expires_at > v_now AND (held.confirmed OR held.message_id <> wanted.id)
), blocked AS MATERIALIZED (
  SELECT DISTINCT ON (place) place, reason, holder FROM standing ORDER BY place, reason, at
), taken AS (
  UPDATE {schema}.store_key AS held SET message_id = wanted.id, fingerprint = wanted.fingerprint, confirmed = false,
    expires_at = v_now + a_hold_ms * interval '1 millisecond'
  FROM wanted LEFT JOIN blocked ON blocked.place = wanted.place
  WHERE blocked.place IS NULL
    AND held.queue = a_queue AND held.kind = wanted.kind AND held.key = wanted.key
)
SELECT place, reason, holder FROM blocked;
END
$body$`

/** As \`takeTokens\`, by this clock: answers 0 when taken, else in how many ms the tokens are there. */
const TAKE_TOKENS = `
CREATE FUNCTION {schema}.store_take_tokens(a_name text, a_capacity float8, a_per_ms float8, a_tokens float8)
RETURNS float8
LANGUAGE plpgsql
AS $body$
DECLARE
  v_now timestamptz;
  v_row record;
  v_there float8;
BEGIN
LOOP
  SELECT tokens, at, full_at INTO v_row FROM {schema}.store_bucket WHERE name = a_name FOR UPDATE;
  v_now := clock_timestamp();
  v_there := a_capacity;
  IF FOUND AND v_row.full_at > v_now THEN
    v_there := least(a_capacity,
      v_row.tokens + greatest(0, date_part('epoch', v_now - v_row.at) * 1000) * a_per_ms);
  END IF;
  IF v_there + 1e-9 < a_tokens THEN
    RETURN greatest(1, ceil((a_tokens - v_there) / a_per_ms));
  END IF;
  v_there := greatest(0, v_there - a_tokens);
  IF v_row IS NOT NULL THEN
    UPDATE {schema}.store_bucket SET tokens = v_there, at = v_now,
      full_at = v_now + (a_capacity - v_there) / a_per_ms * interval '1 millisecond'
    WHERE name = a_name;
    RETURN 0;
  END IF;
  INSERT INTO {schema}.store_bucket (name, tokens, at, full_at)
  VALUES (a_name, v_there, v_now, v_now + (a_capacity - v_there) / a_per_ms * interval '1 millisecond')
  ON CONFLICT (name) DO NOTHING;
  IF FOUND THEN
    RETURN 0;
  END IF;
END LOOP;
END
$body$`

export const FUNCTIONS: readonly string[] = [RESERVE, TAKE_TOKENS]
