import { IN_INDEX_ORDER } from './functions.ts'

/**
 * The claim of a queue with priorities and ageing: `ageing.ts` of the seam says the rule. It replaces `claim_messages`, which stays for
 * instances with older code and does the same.
 */
/**
 * The ready messages whose turn it is, locked, in their order. A queue that uses one priority is walked along its index; several are
 * merged line by line. Heads are only looked at, so that nobody skips a message that is not taken; a line whose next ones all
 * belong to other claims is left out this time.
 */
const TAKE_READY = `
CREATE FUNCTION {schema}.take_ready(a_queue integer, a_max integer, an_ageing_ms bigint)
RETURNS TABLE (place tid, taken_seq bigint)
LANGUAGE plpgsql ${IN_INDEX_ORDER}
AS $body$
#variable_conflict use_column
DECLARE
  head record;
  levels integer[] := '{}';
  standings float8[] := array_fill(NULL::float8, ARRAY[10]);
  lasts bigint[] := array_fill(0::bigint, ARRAY[10]);
  above integer := 10;
  level integer;
  standing float8;
  best integer;
  rival float8;
  rival_level integer;
  wanted integer := a_max;
  run integer;
  got integer;
BEGIN
  LOOP
    SELECT priority, ready_at INTO head FROM {schema}.message
    WHERE queue_id = a_queue AND state = 0 AND priority < above
    ORDER BY priority DESC, seq LIMIT 1;
    EXIT WHEN NOT FOUND;
    above := head.priority;
    levels := levels || above;
    standings[above + 1] := {schema}.standing_of(head.ready_at, above, an_ageing_ms);
  END LOOP;
  IF cardinality(levels) = 1 THEN
    RETURN QUERY SELECT ctid, seq FROM {schema}.message
    WHERE queue_id = a_queue AND state = 0
    ORDER BY priority DESC, seq LIMIT a_max FOR UPDATE SKIP LOCKED;
    RETURN;
  END IF;
  LOOP
    best := NULL;
    rival := 'Infinity';
    -- From the highest: of equal standing it goes first.
    FOREACH level IN ARRAY levels LOOP
      standing := standings[level + 1];
      IF standing IS NULL THEN
        CONTINUE;
      ELSIF best IS NULL THEN
        best := level;
      ELSIF standing < standings[best + 1] THEN
        rival := standings[best + 1];
        rival_level := best;
        best := level;
      ELSIF standing < rival THEN
        rival := standing;
        rival_level := level;
      END IF;
    END LOOP;
    EXIT WHEN best IS NULL OR wanted <= 0;
    SELECT count(*) INTO run FROM (
      SELECT ready_at FROM {schema}.message
      WHERE queue_id = a_queue AND state = 0 AND priority = best AND seq > lasts[best + 1]
      ORDER BY seq LIMIT wanted) AS next
    WHERE {schema}.standing_of(next.ready_at, best, an_ageing_ms) < rival
      OR (best > rival_level AND {schema}.standing_of(next.ready_at, best, an_ageing_ms) = rival);
    got := 0;
    FOR place, taken_seq IN
      SELECT ctid, seq FROM {schema}.message
      WHERE queue_id = a_queue AND state = 0 AND priority = best AND seq > lasts[best + 1]
      ORDER BY seq LIMIT greatest(run, 1) FOR UPDATE SKIP LOCKED
    LOOP
      RETURN NEXT;
      got := got + 1;
      lasts[best + 1] := taken_seq;
    END LOOP;
    wanted := wanted - got;
    standings[best + 1] := CASE WHEN got > 0 THEN (
      SELECT {schema}.standing_of(ready_at, best, an_ageing_ms) FROM {schema}.message
      WHERE queue_id = a_queue AND state = 0 AND priority = best AND seq > lasts[best + 1]
      ORDER BY seq LIMIT 1) END;
  END LOOP;
END
$body$`

const STANDING_OF = `
CREATE FUNCTION {schema}.standing_of(a_moment timestamptz, a_priority integer, an_ageing_ms bigint) RETURNS float8
LANGUAGE sql STABLE
AS $body$ SELECT date_part('epoch', a_moment) * 1000 - a_priority * an_ageing_ms $body$`

/** `more`: what a later version adds to its answer. One suspect alone and before all others. Rows are reached by their place (ctid), without another look into an index. */
export const claimInTurn = (more: {
  readonly columns: string
  readonly values: string
}): string => `
CREATE FUNCTION {schema}.claim_in_turn(a_queue integer, a_max integer, a_lease_ms float8, a_owner text)
RETURNS TABLE (turn integer, seq float8, claim_id float8, id text, priority integer, sent_at float8, deliveries float8,
  alone boolean, counted float8, crashes float8, redrives float8, throttled_since float8, idempotency_key text,
  ordering_key text, headers text, records text, body bytea${more.columns})
LANGUAGE plpgsql ${IN_INDEX_ORDER}
AS $body$
#variable_conflict use_column
DECLARE
  ageing bigint;
  places tid[];
  seqs bigint[];
  holder bigint;
BEGIN
  SELECT ageing_ms INTO ageing FROM {schema}.queue WHERE id = a_queue AND NOT paused;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT array_agg(place), array_agg(seq) INTO places, seqs FROM (
    SELECT ctid AS place, seq FROM {schema}.message
    WHERE queue_id = a_queue AND state = 3
    ORDER BY ready_at LIMIT 1 FOR UPDATE SKIP LOCKED) AS suspect;
  IF places IS NULL THEN
    SELECT array_agg(place), array_agg(taken_seq) INTO places, seqs
    FROM {schema}.take_ready(a_queue, a_max, ageing);
  END IF;
  IF places IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO {schema}.claim (queue_id, owner, expires_at)
  VALUES (a_queue, a_owner, clock_timestamp() + a_lease_ms * interval '1 millisecond')
  RETURNING claim_id INTO holder;
  RETURN QUERY
  UPDATE {schema}.message AS message
  SET state = 2, claim_id = holder, deliveries = least(deliveries, 9223372036854775806) + 1
  WHERE ctid = ANY (places)
  RETURNING array_position(seqs, seq) AS turn, seq::float8 AS seq, claim_id::float8 AS claim_id, id,
    priority::int4 AS priority, (date_part('epoch', sent_at) * 1000)::float8 AS sent_at,
    deliveries::float8 AS deliveries, alone, counted::float8 AS counted, crashes::float8 AS crashes,
    redrives::float8 AS redrives, throttled_since::float8 AS throttled_since,
    idempotency_key, ordering_key, headers, records, body${more.values};
END
$body$`

/** For instances of older code, which know this name and these columns. */
const CLAIM_MESSAGES = `
CREATE OR REPLACE FUNCTION {schema}.claim_messages(a_queue integer, a_max integer, a_lease_ms float8, a_owner text)
RETURNS TABLE (seq float8, claim_id float8, id text, priority integer, sent_at float8, deliveries float8, alone boolean,
  counted float8, crashes float8, redrives float8, throttled_since float8, idempotency_key text, ordering_key text,
  headers text, records text, body bytea)
LANGUAGE sql
AS $body$
  SELECT seq, claim_id, id, priority, sent_at, deliveries, alone, counted, crashes, redrives, throttled_since,
    idempotency_key, ordering_key, headers, records, body
  FROM {schema}.claim_in_turn(a_queue, a_max, a_lease_ms, a_owner)
$body$`

export const AGEING: readonly string[] = [
  'ALTER TABLE {schema}.queue ADD COLUMN ageing_ms bigint NOT NULL DEFAULT 60000',
  STANDING_OF,
  TAKE_READY,
  claimInTurn({ columns: '', values: '' }),
  CLAIM_MESSAGES,
]
