import { claimInTurn } from './ageing.ts'
import { IN_INDEX_ORDER } from './functions.ts'

/**
 * Fairness between keys: `fair-share.ts` of the seam says the rule. State -1 is ready with a place among the fair keys of its priority
 * (below 4, so that code of version 2 counts it as the head of its ordering key). Whatever makes a message ready that has a fair
 * key gives it its place; what is ready is all the state there is.
 *
 * Places are read without a lock. Sends of one key at the same moment may take the same place: then so many of it go in one turn.
 */
const COLUMNS: readonly string[] = [
  `ALTER TABLE {schema}.message ADD COLUMN fair_key text COLLATE "C", ADD COLUMN fair_weight float8,
  ADD COLUMN place float8`,
  `ALTER TABLE {schema}.dead_letter ADD COLUMN fair_key text COLLATE "C", ADD COLUMN fair_weight float8`,
  'CREATE INDEX message_fair ON {schema}.message (queue_id, priority DESC, place, seq) WHERE state = -1',
  'CREATE INDEX message_share ON {schema}.message (queue_id, priority, fair_key, place) WHERE state = -1',
  'CREATE INDEX message_fair_age ON {schema}.message (queue_id, priority, ready_at, seq) WHERE state = -1',
]

const FAIR_PLACE = `
CREATE FUNCTION {schema}.fair_place(a_queue integer, a_priority smallint, a_key text, a_weight float8) RETURNS float8
LANGUAGE plpgsql ${IN_INDEX_ORDER}
AS $body$
BEGIN
  RETURN greatest(0,
    (SELECT place FROM {schema}.message
      WHERE queue_id = a_queue AND state = -1 AND priority = a_priority
      ORDER BY place, seq LIMIT 1),
    (SELECT place FROM {schema}.message
      WHERE queue_id = a_queue AND state = -1 AND priority = a_priority AND fair_key = a_key
      ORDER BY place DESC LIMIT 1)
  ) + 1 / coalesce(a_weight, 1);
END
$body$`

/** By its name it comes after `enter_key`, which may put a message behind others of its ordering key. */
const ON_INSERT: readonly string[] = [
  `CREATE FUNCTION {schema}.take_fair_place() RETURNS trigger
LANGUAGE plpgsql
AS $body$
BEGIN
  NEW.state := -1;
  NEW.place := {schema}.fair_place(NEW.queue_id, NEW.priority, NEW.fair_key, NEW.fair_weight);
  RETURN NEW;
END
$body$`,
  `CREATE TRIGGER fair_place BEFORE INSERT ON {schema}.message
  FOR EACH ROW WHEN (NEW.fair_key IS NOT NULL AND NEW.state = 0)
  EXECUTE FUNCTION {schema}.take_fair_place()`,
]

/** As in version 2, and the new head of a key gets its place. */
export function advanceKey({ isHeaded, behind }: Record<'isHeaded' | 'behind', string>): string {
  return `
CREATE OR REPLACE FUNCTION {schema}.advance_key(a_queue integer, a_key text) RETURNS void
LANGUAGE plpgsql
AS $body$
DECLARE
  next_seq bigint;
BEGIN
  IF ${isHeaded} THEN
    RETURN;
  END IF;
  LOOP
    next_seq := ${behind};
    IF next_seq IS NULL THEN
      DELETE FROM {schema}.ordering_key WHERE queue_id = a_queue AND key = a_key;
      RETURN;
    END IF;
    UPDATE {schema}.message
    SET state = CASE WHEN ready_at > clock_timestamp() THEN 1 WHEN alone THEN 3
        WHEN fair_key IS NULL THEN 0 ELSE -1 END,
      place = CASE WHEN fair_key IS NULL THEN NULL
        ELSE {schema}.fair_place(queue_id, priority, fair_key, fair_weight) END
    WHERE seq = next_seq;
    EXIT WHEN FOUND;
  END LOOP;
END
$body$`
}

/** As in version 1, and what fell due and has a fair key gets its place. */
const TEND_QUEUE = `
CREATE OR REPLACE FUNCTION {schema}.tend_queue(a_queue integer, a_step integer)
RETURNS TABLE (paused boolean, promoted integer, ready boolean, due_ms float8, lease_ms float8)
LANGUAGE plpgsql ${IN_INDEX_ORDER}
AS $body$
#variable_conflict use_column
BEGIN
RETURN QUERY
WITH due AS (
  UPDATE {schema}.message SET
    state = CASE WHEN alone THEN 3 WHEN fair_key IS NULL THEN 0 ELSE -1 END,
    place = CASE WHEN alone OR fair_key IS NULL THEN NULL
      ELSE {schema}.fair_place(queue_id, priority, fair_key, fair_weight) END
  WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.message
    WHERE queue_id = a_queue AND state = 1 AND ready_at <= now()
    ORDER BY ready_at LIMIT a_step FOR UPDATE SKIP LOCKED))
  RETURNING 1
)
SELECT queue.paused,
  (SELECT count(*) FROM due)::int4 AS promoted,
  (SELECT 1 FROM {schema}.message WHERE queue_id = a_queue AND state = 0
    ORDER BY priority DESC, seq LIMIT 1) IS NOT NULL
    OR (SELECT 1 FROM {schema}.message WHERE queue_id = a_queue AND state = -1
      ORDER BY priority DESC, place, seq LIMIT 1) IS NOT NULL
    OR (SELECT 1 FROM {schema}.message WHERE queue_id = a_queue AND state = 3
      ORDER BY ready_at LIMIT 1) IS NOT NULL AS ready,
  (SELECT date_part('epoch', min(ready_at) - clock_timestamp()) * 1000 FROM {schema}.message
    WHERE queue_id = a_queue AND state = 1 AND ready_at > now())::float8 AS due_ms,
  (SELECT date_part('epoch', min(expires_at) - clock_timestamp()) * 1000 FROM {schema}.claim)::float8 AS lease_ms
FROM {schema}.queue AS queue WHERE queue.id = a_queue;
END
$body$`

/**
 * As in version 3, with two lines for each priority: number 2p + 1 goes by the order of sending, 2p + 2 by the places of fair keys. The
 * second stands where its oldest stands, so that none in it waits for ever; beside other lines its turn is judged anew after
 * each message, as the next one need not be the oldest.
 */
const TAKE_READY = `
CREATE OR REPLACE FUNCTION {schema}.take_ready(a_queue integer, a_max integer, an_ageing_ms bigint)
RETURNS TABLE (place tid, taken_seq bigint)
LANGUAGE plpgsql ${IN_INDEX_ORDER}
AS $body$
#variable_conflict use_column
DECLARE
  head record;
  lines integer[] := '{}';
  standings float8[] := array_fill(NULL::float8, ARRAY[20]);
  lasts bigint[] := array_fill(0::bigint, ARRAY[20]);
  last_places float8[] := array_fill(0::float8, ARRAY[20]);
  -- The oldest of each line of fair keys, and what was taken from any.
  oldest_ats timestamptz[] := array_fill(NULL::timestamptz, ARRAY[20]);
  oldest_seqs bigint[] := array_fill(0::bigint, ARRAY[20]);
  mine bigint[] := '{}';
  above integer;
  line integer;
  best integer;
  level integer;
  rival float8;
  rival_level integer;
  wanted integer := a_max;
  run integer;
  got integer;
BEGIN
  above := 10;
  LOOP
    SELECT priority, ready_at INTO head FROM {schema}.message
    WHERE queue_id = a_queue AND state = 0 AND priority < above
    ORDER BY priority DESC, seq LIMIT 1;
    EXIT WHEN NOT FOUND;
    above := head.priority;
    lines := lines || (2 * above + 1);
    standings[2 * above + 1] := {schema}.standing_of(head.ready_at, above, an_ageing_ms);
  END LOOP;
  above := 10;
  LOOP
    SELECT priority INTO head FROM {schema}.message
    WHERE queue_id = a_queue AND state = -1 AND priority < above
    ORDER BY priority DESC, place, seq LIMIT 1;
    EXIT WHEN NOT FOUND;
    above := head.priority;
    lines := lines || (2 * above + 2);
    SELECT ready_at, seq INTO head FROM {schema}.message
    WHERE queue_id = a_queue AND state = -1 AND priority = above
    ORDER BY ready_at, seq LIMIT 1;
    oldest_ats[2 * above + 2] := head.ready_at;
    oldest_seqs[2 * above + 2] := head.seq;
    standings[2 * above + 2] := {schema}.standing_of(head.ready_at, above, an_ageing_ms);
  END LOOP;
  IF cardinality(lines) = 1 AND lines[1] % 2 = 1 THEN
    RETURN QUERY SELECT ctid, seq FROM {schema}.message
    WHERE queue_id = a_queue AND state = 0
    ORDER BY priority DESC, seq LIMIT a_max FOR UPDATE SKIP LOCKED;
    RETURN;
  ELSIF cardinality(lines) = 1 THEN
    RETURN QUERY SELECT ctid, seq FROM {schema}.message
    WHERE queue_id = a_queue AND state = -1
    ORDER BY priority DESC, place, seq LIMIT a_max FOR UPDATE SKIP LOCKED;
    RETURN;
  END IF;
  lines := ARRAY(SELECT number FROM unnest(lines) AS number ORDER BY number DESC);
  LOOP
    best := NULL;
    rival := 'Infinity';
    rival_level := 0;
    -- From the highest: of equal standing it goes first.
    FOREACH line IN ARRAY lines LOOP
      IF standings[line] IS NULL THEN
        CONTINUE;
      ELSIF best IS NULL THEN
        best := line;
      ELSIF standings[line] < standings[best] THEN
        rival := standings[best];
        rival_level := (best - 1) / 2;
        best := line;
      ELSIF standings[line] < rival THEN
        rival := standings[line];
        rival_level := (line - 1) / 2;
      END IF;
    END LOOP;
    EXIT WHEN best IS NULL OR wanted <= 0;
    level := (best - 1) / 2;
    got := 0;
    IF best % 2 = 1 THEN
      SELECT count(*) INTO run FROM (
        SELECT ready_at FROM {schema}.message
        WHERE queue_id = a_queue AND state = 0 AND priority = level AND seq > lasts[best]
        ORDER BY seq LIMIT wanted) AS next
      WHERE {schema}.standing_of(next.ready_at, level, an_ageing_ms) < rival
        OR (level >= rival_level AND {schema}.standing_of(next.ready_at, level, an_ageing_ms) = rival);
      FOR place, taken_seq IN
        SELECT ctid, seq FROM {schema}.message
        WHERE queue_id = a_queue AND state = 0 AND priority = level AND seq > lasts[best]
        ORDER BY seq LIMIT greatest(run, 1) FOR UPDATE SKIP LOCKED
      LOOP
        RETURN NEXT;
        got := got + 1;
        lasts[best] := taken_seq;
      END LOOP;
      standings[best] := CASE WHEN got > 0 THEN (
        SELECT {schema}.standing_of(ready_at, level, an_ageing_ms) FROM {schema}.message
        WHERE queue_id = a_queue AND state = 0 AND priority = level AND seq > lasts[best]
        ORDER BY seq LIMIT 1) END;
    ELSE
      FOR head IN
        SELECT ctid AS at, seq, message.place AS share FROM {schema}.message AS message
        WHERE queue_id = a_queue AND state = -1 AND priority = level
          AND (message.place, seq) > (last_places[best], lasts[best])
        ORDER BY message.place, seq LIMIT CASE WHEN rival = 'Infinity' THEN wanted ELSE 1 END
        FOR UPDATE SKIP LOCKED
      LOOP
        place := head.at;
        taken_seq := head.seq;
        RETURN NEXT;
        got := got + 1;
        mine := mine || taken_seq;
        lasts[best] := head.seq;
        last_places[best] := head.share;
      END LOOP;
      IF got = 0 THEN
        standings[best] := NULL;
      ELSIF oldest_seqs[best] = ANY (mine) THEN
        SELECT ready_at, seq INTO head FROM {schema}.message
        WHERE queue_id = a_queue AND state = -1 AND priority = level
          AND (ready_at, seq) > (oldest_ats[best], oldest_seqs[best]) AND seq <> ALL (mine)
        ORDER BY ready_at, seq LIMIT 1;
        oldest_ats[best] := head.ready_at;
        oldest_seqs[best] := head.seq;
        standings[best] := {schema}.standing_of(head.ready_at, level, an_ageing_ms);
      END IF;
    END IF;
    wanted := wanted - got;
  END LOOP;
END
$body$`

export const FAIRNESS: readonly string[] = [
  ...COLUMNS,
  FAIR_PLACE,
  ...ON_INSERT,
  advanceKey({
    isHeaded: `EXISTS (SELECT 1 FROM {schema}.message
    WHERE queue_id = a_queue AND ordering_key = a_key AND state < 4)`,
    behind: `(SELECT seq FROM {schema}.message
      WHERE queue_id = a_queue AND ordering_key = a_key AND state = 4 ORDER BY seq LIMIT 1)`,
  }),
  TEND_QUEUE,
  TAKE_READY,
  'DROP FUNCTION {schema}.claim_in_turn(integer, integer, float8, text)',
  claimInTurn({
    columns: ', fair_key text, fair_weight float8',
    values: ', fair_key, fair_weight',
  }),
]
