/**
 * Order by key lives in the database: of each key one message is not behind (state 4), its head, and triggers see to it on every
 * way into the queue and out of it, also of instances with older code. Messages without a key pay for a WHEN that is false.
 *
 * The row of a key in `ordering_key` is its lock: who sends, ends or skips changes it first, so that all of them go one after
 * the other, and a transaction with an older snapshot (REPEATABLE READ) fails instead of overlooking what it cannot see.
 * The row goes with the last message of its key.
 */

const KEY_TABLE: readonly string[] = [
  "ALTER TABLE {schema}.queue ADD COLUMN on_dead text NOT NULL DEFAULT 'continue'",
  `CREATE TABLE {schema}.ordering_key (
  queue_id integer NOT NULL,
  key text COLLATE "C" NOT NULL,
  changes bigint NOT NULL DEFAULT 0,
  halted_by text COLLATE "C",
  halted_at timestamptz,
  PRIMARY KEY (queue_id, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)`,
  'CREATE INDEX ordering_key_halted ON {schema}.ordering_key (queue_id, key) WHERE halted_by IS NOT NULL',
  // With the state: the search for a head would read all of its key without.
  `CREATE INDEX message_ordering_key ON {schema}.message (queue_id, ordering_key, state, seq)
  WHERE ordering_key IS NOT NULL`,
  'CREATE INDEX message_behind ON {schema}.message (queue_id) WHERE state = 4',
]

/**
 * Answers who halted it; null when it goes on. Updates first: a row that a snapshot still sees and that is gone fails there,
 * while an insert alone would make a new one beside messages that the snapshot still sees, and stand behind them for ever.
 */
const LOCK_KEY = `
CREATE FUNCTION {schema}.lock_key(a_queue integer, a_key text) RETURNS text
LANGUAGE plpgsql
AS $body$
DECLARE
  halting text;
BEGIN
  UPDATE {schema}.ordering_key SET changes = changes + 1
  WHERE queue_id = a_queue AND key = a_key RETURNING halted_by INTO halting;
  IF NOT FOUND THEN
    INSERT INTO {schema}.ordering_key AS known (queue_id, key) VALUES (a_queue, a_key)
    ON CONFLICT (queue_id, key) DO UPDATE SET changes = known.changes + 1
    RETURNING halted_by INTO halting;
  END IF;
  RETURN halting;
END
$body$`

/**
 * Of a key that is locked and not halted: the first one behind becomes the head, unless there is one. Who removes one that is
 * behind locks no key, so the first may go while this waits for it: then it is the next one's turn.
 */
const ADVANCE_KEY = `
CREATE FUNCTION {schema}.advance_key(a_queue integer, a_key text) RETURNS void
LANGUAGE plpgsql
AS $body$
DECLARE
  next_seq bigint;
BEGIN
  IF EXISTS (SELECT 1 FROM {schema}.message
    WHERE queue_id = a_queue AND ordering_key = a_key AND state < 4) THEN
    RETURN;
  END IF;
  LOOP
    SELECT seq INTO next_seq FROM {schema}.message
    WHERE queue_id = a_queue AND ordering_key = a_key AND state = 4 ORDER BY seq LIMIT 1;
    IF next_seq IS NULL THEN
      DELETE FROM {schema}.ordering_key WHERE queue_id = a_queue AND key = a_key;
      RETURN;
    END IF;
    UPDATE {schema}.message
    SET state = CASE WHEN ready_at > clock_timestamp() THEN 1 WHEN alone THEN 3 ELSE 0 END
    WHERE seq = next_seq;
    EXIT WHEN FOUND;
  END LOOP;
END
$body$`

/**
 * Whoever had halted its key and is redriven goes to its front; others of a key that is taken go behind. One that is sent again
 * while it dies is still on the shelf, and stays there.
 */
export function enterKey({ taken }: { readonly taken: string }): string {
  return `
CREATE OR REPLACE FUNCTION {schema}.enter_key() RETURNS trigger
LANGUAGE plpgsql
AS $body$
DECLARE
  halting text := {schema}.lock_key(NEW.queue_id, NEW.ordering_key);
BEGIN
  IF halting = NEW.id THEN
    IF EXISTS (SELECT 1 FROM {schema}.dead_letter WHERE queue_id = NEW.queue_id AND id = NEW.id) THEN
      RETURN NULL;
    END IF;
    UPDATE {schema}.ordering_key SET halted_by = NULL, halted_at = NULL
    WHERE queue_id = NEW.queue_id AND key = NEW.ordering_key;
  ELSIF halting IS NOT NULL OR ${taken} THEN
    NEW.state := 4;
  END IF;
  RETURN NEW;
END
$body$`
}

/** A head has ended. It has died when its dead letter came with the same statement. */
const LEAVE_KEY = `
CREATE FUNCTION {schema}.leave_key() RETURNS trigger
LANGUAGE plpgsql
AS $body$
DECLARE
  halting text := {schema}.lock_key(OLD.queue_id, OLD.ordering_key);
BEGIN
  IF halting IS NOT NULL THEN
    RETURN NULL;
  END IF;
  IF EXISTS (SELECT 1 FROM {schema}.queue WHERE id = OLD.queue_id AND on_dead = 'halt-key')
    AND EXISTS (SELECT 1 FROM {schema}.dead_letter WHERE queue_id = OLD.queue_id AND id = OLD.id) THEN
    UPDATE {schema}.ordering_key SET halted_by = OLD.id, halted_at = clock_timestamp()
    WHERE queue_id = OLD.queue_id AND key = OLD.ordering_key;
  ELSE
    PERFORM {schema}.advance_key(OLD.queue_id, OLD.ordering_key);
  END IF;
  RETURN NULL;
END
$body$`

/** The dead letter that halted a key is gone, and not into the queue: the key goes on. */
const DROP_HALT = `
CREATE FUNCTION {schema}.drop_halt() RETURNS trigger
LANGUAGE plpgsql
AS $body$
BEGIN
  UPDATE {schema}.ordering_key SET halted_by = NULL, halted_at = NULL, changes = changes + 1
  WHERE queue_id = OLD.queue_id AND key = OLD.ordering_key AND halted_by = OLD.id;
  IF FOUND THEN
    PERFORM {schema}.advance_key(OLD.queue_id, OLD.ordering_key);
  END IF;
  RETURN NULL;
END
$body$`

const SKIP_KEYS = `
CREATE FUNCTION {schema}.skip_keys(a_queue integer, a_list text[], an_actor text, a_reason text)
RETURNS SETOF text
LANGUAGE plpgsql
AS $body$
DECLARE
  halted record;
BEGIN
  FOR halted IN
    SELECT key, halted_by FROM {schema}.ordering_key
    WHERE queue_id = a_queue AND key = ANY (a_list) AND halted_by IS NOT NULL
    ORDER BY key FOR UPDATE
  LOOP
    UPDATE {schema}.ordering_key SET halted_by = NULL, halted_at = NULL, changes = changes + 1
    WHERE queue_id = a_queue AND key = halted.key;
    INSERT INTO {schema}.audit (queue_id, message_id, at, act, actor, reason)
    VALUES (a_queue, halted.halted_by, now(), 'skip', an_actor, a_reason);
    PERFORM {schema}.advance_key(a_queue, halted.key);
    RETURN NEXT halted.key;
  END LOOP;
END
$body$`

const TRIGGERS: readonly string[] = [
  `CREATE TRIGGER enter_key BEFORE INSERT ON {schema}.message
  FOR EACH ROW WHEN (NEW.ordering_key IS NOT NULL) EXECUTE FUNCTION {schema}.enter_key()`,
  `CREATE TRIGGER leave_key AFTER DELETE ON {schema}.message
  FOR EACH ROW WHEN (OLD.ordering_key IS NOT NULL AND OLD.state <> 4) EXECUTE FUNCTION {schema}.leave_key()`,
  `CREATE TRIGGER drop_halt AFTER DELETE ON {schema}.dead_letter
  FOR EACH ROW WHEN (OLD.ordering_key IS NOT NULL) EXECUTE FUNCTION {schema}.drop_halt()`,
]

/**
 * Messages that waited before are lined up by their keys. Of a key with several in flight none moves up before the last of them
 * has ended.
 */
const LINE_UP = `
UPDATE {schema}.message AS later SET state = 4
WHERE ordering_key IS NOT NULL AND state <> 2 AND EXISTS (
  SELECT 1 FROM {schema}.message AS earlier
  WHERE earlier.queue_id = later.queue_id AND earlier.ordering_key = later.ordering_key
    AND (earlier.seq < later.seq OR earlier.state = 2))`

export const ORDERED_KEYS: readonly string[] = [
  ...KEY_TABLE,
  LOCK_KEY,
  ADVANCE_KEY,
  enterKey({
    taken: `EXISTS (SELECT 1 FROM {schema}.message
    WHERE queue_id = NEW.queue_id AND ordering_key = NEW.ordering_key)`,
  }),
  LEAVE_KEY,
  DROP_HALT,
  SKIP_KEYS,
  ...TRIGGERS,
  LINE_UP,
]
