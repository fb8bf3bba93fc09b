/** Every statement of the transport, once. Counters saturate: one at its limit must not stop a batch. */

export const FIND_QUEUE = 'SELECT id, max_depth, paused, total FROM millrace_queue WHERE name = ?'
export const ENSURE_QUEUE = `
INSERT INTO millrace_queue (name, owner, max_depth, on_dead, ageing_ms) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, max_depth = excluded.max_depth,
  on_dead = excluded.on_dead, ageing_ms = excluded.ageing_ms`
export const ADD_TO_TOTAL = 'UPDATE millrace_queue SET total = max(0, total + ?) WHERE id = ?'
export const SET_PAUSED = 'UPDATE millrace_queue SET paused = ? WHERE id = ?'
export const NEXT_FENCE =
  'UPDATE millrace_queue SET fence = fence + 1 WHERE id = ? AND paused = 0 RETURNING fence, ageing_ms'

export const INSERT_MESSAGE = `
INSERT INTO millrace_message
  (queue_id, id, state, priority, ready_at, sent_at, idempotency_key, ordering_key, headers, body,
   fair_key, fair_weight)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (queue_id, id) DO NOTHING`
/** Rows of one INSERT_MESSAGES and of one INSERT_ALIKE; more gain nothing (measured: 2.7 µs a row alone, 1.1 µs by tens, 1.1 µs by twenties). */
export const INSERT_ROWS = 10
/** OR IGNORE and not ON CONFLICT: 0.15 µs a row less. What it ignores is missed in the count, and then asked one by one. */
export const INSERT_MESSAGES: string = `
INSERT OR IGNORE INTO millrace_message
  (queue_id, id, state, priority, ready_at, sent_at, idempotency_key, ordering_key, headers, body)
VALUES ${new Array(INSERT_ROWS).fill('(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').join(', ')}`
/** The same for messages that differ in id and body only: 26 values to bind instead of 100. */
export const INSERT_ALIKE: string = insertAlike(INSERT_ROWS)
/** For batches of hundreds: 0.1 µs a row less than by tens. */
export const INSERT_MANY_ROWS = 50
export const INSERT_MANY_ALIKE: string = insertAlike(INSERT_MANY_ROWS)

/** No numbered parameters: node:sqlite looks for the name of each in a list, 0.1 µs a row, and better-sqlite3 binds none. */
function insertAlike(rows: number): string {
  return `
INSERT OR IGNORE INTO millrace_message
  (queue_id, state, priority, ready_at, sent_at, headers, id, body)
SELECT alike.*, own.column1, own.column2
FROM (SELECT ?, ?, ?, ?, ?, ?) AS alike, (VALUES ${new Array(rows).fill('(?, ?)').join(', ')}) AS own`
}

/** Takes back the newest rows; within one write transaction nobody else has added any. */
export const REMOVE_NEWEST = `
DELETE FROM millrace_message
WHERE seq > (SELECT max(seq) FROM millrace_message) - ?`
export const HAS_MESSAGE = 'SELECT 1 AS found FROM millrace_message WHERE queue_id = ? AND id = ?'
export const LAST_DEAD_ID = 'SELECT max(id) AS id FROM millrace_dead_letter WHERE queue_id = ?'
export const HAS_DEAD_LETTER =
  'SELECT 1 AS found FROM millrace_dead_letter WHERE queue_id = ? AND id = ?'

export const RECALL_KEY = `
SELECT message_id, fingerprint FROM millrace_remembered_key
WHERE queue_id = ? AND kind = ? AND key = ? AND expires_at > ?`
export const REMEMBER_KEY = `
INSERT INTO millrace_remembered_key (queue_id, kind, key, fingerprint, message_id, expires_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (queue_id, kind, key) DO UPDATE SET
  fingerprint = excluded.fingerprint,
  message_id = excluded.message_id,
  expires_at = excluded.expires_at`
export const PRUNE_KEYS = `
DELETE FROM millrace_remembered_key WHERE (queue_id, kind, key) IN (
  SELECT queue_id, kind, key FROM millrace_remembered_key WHERE expires_at <= ? LIMIT ?)`

/** What a receive would find, without taking any lock that hinders a writer. */
export const PROBE = `
SELECT
  paused,
  EXISTS (SELECT 1 FROM millrace_message WHERE queue_id = queue.id AND state = 0)
    OR EXISTS (SELECT 1 FROM millrace_message WHERE queue_id = queue.id AND state = -1)
    OR EXISTS (SELECT 1 FROM millrace_message WHERE queue_id = queue.id AND state = 3) AS ready,
  (SELECT min(ready_at) FROM millrace_message WHERE queue_id = queue.id AND state = 1) AS due_at,
  (SELECT min(lease_until) FROM millrace_message WHERE state = 2) AS lease_at
FROM millrace_queue AS queue WHERE id = ?`

export const PROMOTE_DUE = `
UPDATE millrace_message SET state = iif(alone, 3, 0) WHERE seq IN (
  SELECT seq FROM millrace_message
  WHERE queue_id = ? AND state = 1 AND ready_at <= ? ORDER BY ready_at LIMIT ?)`

export const EXPIRED_LEASES = `
SELECT seq, queue_id, records, throttled_since,
  min(counted, 9007199254740991) AS counted,
  min(crashes, 9007199254740991) AS crashes,
  min(redrives, 9007199254740991) AS redrives
FROM millrace_message WHERE state = 2 AND lease_until <= ? ORDER BY lease_until LIMIT ?`
export const QUARANTINE = `
UPDATE millrace_message
SET state = 3, alone = 1, ready_at = ?, counted = ?, crashes = ?, records = ?
WHERE seq = ?`

export const CLAIM_QUARANTINED = `
UPDATE millrace_message
SET state = 2, lease_until = ?, fence = ?, deliveries = min(deliveries, 9007199254740990) + 1
WHERE seq = (
  SELECT seq FROM millrace_message WHERE queue_id = ? AND state = 3 ORDER BY ready_at LIMIT 1)
RETURNING seq, id, priority, sent_at, ready_at, deliveries, alone, throttled_since,
  min(counted, 9007199254740991) AS counted,
  min(crashes, 9007199254740991) AS crashes,
  min(redrives, 9007199254740991) AS redrives,
  idempotency_key, ordering_key, fair_key, fair_weight, headers, records, body`
/** The next lower priority that has a line. */
export const NEXT_LINE = `
SELECT priority FROM millrace_message WHERE queue_id = ? AND state = 0 AND priority < ?
ORDER BY priority DESC, ready_at, seq LIMIT 1`
export const HEAD_OF_LINE = `
SELECT ready_at FROM millrace_message WHERE queue_id = ? AND state = 0 AND priority = ?
ORDER BY ready_at, seq LIMIT 1`
/** From one line, and only what became ready by a moment. */
export const CLAIM_LINE = `
UPDATE millrace_message
SET state = 2, lease_until = ?, fence = ?, deliveries = min(deliveries, 9007199254740990) + 1
WHERE seq IN (
  SELECT seq FROM millrace_message WHERE queue_id = ? AND state = 0 AND priority = ? AND ready_at <= ?
  ORDER BY ready_at, seq LIMIT ?)
RETURNING seq, id, priority, sent_at, ready_at, deliveries, alone, throttled_since,
  min(counted, 9007199254740991) AS counted,
  min(crashes, 9007199254740991) AS crashes,
  min(redrives, 9007199254740991) AS redrives,
  idempotency_key, ordering_key, fair_key, fair_weight, headers, records, body`
export const CLAIM_READY = `
UPDATE millrace_message
SET state = 2, lease_until = ?, fence = ?, deliveries = min(deliveries, 9007199254740990) + 1
WHERE seq IN (
  SELECT seq FROM millrace_message WHERE queue_id = ? AND state = 0
  ORDER BY priority DESC, ready_at, seq LIMIT ?)
RETURNING seq, id, priority, sent_at, ready_at, deliveries, alone, throttled_since,
  min(counted, 9007199254740991) AS counted,
  min(crashes, 9007199254740991) AS crashes,
  min(redrives, 9007199254740991) AS redrives,
  idempotency_key, ordering_key, fair_key, fair_weight, headers, records, body`

export const RENEW = `
UPDATE millrace_message SET lease_until = ?
WHERE seq = ? AND queue_id = ? AND fence = ? AND state = 2 AND lease_until > ?`
export const ACK = `
DELETE FROM millrace_message
WHERE seq = ? AND queue_id = ? AND fence = ? AND state = 2 AND lease_until > ?`
export const RELEASE = `
UPDATE millrace_message
SET state = ?, ready_at = ?, alone = ?, counted = ?, throttled_since = ?, records = ?
WHERE seq = ? AND queue_id = ? AND fence = ? AND state = 2 AND lease_until > ?`
export const BURY = `
INSERT OR REPLACE INTO millrace_dead_letter
  (queue_id, id, dead_at, error_class, reason, owner, priority, sent_at, counted, crashes, redrives,
   throttled_since, idempotency_key, ordering_key, fair_key, fair_weight, headers, records, body)
SELECT queue_id, id, ?, ?, ?, (SELECT owner FROM millrace_queue WHERE id = queue_id), priority,
  sent_at, ?, crashes, redrives, ?, idempotency_key, ordering_key,
  fair_key, fair_weight, headers, ?, body
FROM millrace_message
WHERE seq = ? AND queue_id = ? AND fence = ? AND state = 2 AND lease_until > ?`

/** One priority at a time: the index of the ready ones then gives the oldest without a sort. */
export const SHED_READY = `
SELECT seq, length(body) AS bytes FROM millrace_message
WHERE queue_id = ? AND state = 0 AND priority = ? AND ordering_key IS NULL
ORDER BY ready_at, seq LIMIT ?`
export const SHED_FAIR = `
SELECT seq, length(body) AS bytes FROM millrace_message
WHERE queue_id = ? AND state = -1 AND priority = ? AND ordering_key IS NULL
ORDER BY ready_at, seq LIMIT ?`
export const SHED_SCHEDULED = `
SELECT seq, length(body) AS bytes FROM millrace_message
WHERE queue_id = ? AND state = 1 AND priority <= ? AND alone = 0 AND ordering_key IS NULL
ORDER BY ready_at DESC LIMIT ?`
export const BURY_WAITING = `
INSERT OR REPLACE INTO millrace_dead_letter
  (queue_id, id, dead_at, error_class, reason, owner, priority, sent_at, counted, crashes, redrives,
   throttled_since, idempotency_key, ordering_key, fair_key, fair_weight, headers, records, body)
SELECT queue_id, id, ?, 'permanent', ?, (SELECT owner FROM millrace_queue WHERE id = queue_id), priority,
  sent_at, counted, crashes, redrives, throttled_since, idempotency_key, ordering_key,
  fair_key, fair_weight, headers, records, body
FROM millrace_message WHERE seq = ?`
/** One that a purge or a shed chose. */
export const DROP_WAITING = 'DELETE FROM millrace_message WHERE seq = ?'

export const GAUGE = `
SELECT
  queue.paused,
  queue.total,
  (SELECT count(*) FROM millrace_message
    WHERE queue_id = queue.id AND state = 1 AND ready_at > ?) AS scheduled,
  (SELECT count(*) FROM millrace_message INDEXED BY millrace_message_in_flight
    WHERE queue_id = queue.id AND state = 2 AND lease_until > ?) AS in_flight,
  (SELECT count(*) FROM millrace_dead_letter WHERE queue_id = queue.id) AS dead,
  min(
    ifnull((SELECT min(ready_at) FROM millrace_message
      WHERE queue_id = queue.id AND state = 1), 9007199254740991),
    ifnull((SELECT min(ready_at) FROM millrace_message
      WHERE queue_id = queue.id AND state = 3), 9007199254740991),
    ifnull((SELECT min((SELECT ready_at FROM millrace_message
      WHERE queue_id = queue.id AND state = 0 AND priority = level.column1
      ORDER BY ready_at LIMIT 1))
      FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS level), 9007199254740991),
    ifnull((SELECT min((SELECT ready_at FROM millrace_message
      WHERE queue_id = queue.id AND state = -1 AND priority = level.column1
      ORDER BY ready_at LIMIT 1))
      FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS level), 9007199254740991)
  ) AS oldest_at
FROM millrace_queue AS queue WHERE name = ?`
export const GET_MESSAGE = `
SELECT id, state, priority, sent_at, ready_at, throttled_since,
  min(counted, 9007199254740991) AS counted,
  min(crashes, 9007199254740991) AS crashes,
  min(redrives, 9007199254740991) AS redrives,
  idempotency_key, ordering_key, fair_key, fair_weight, headers, records, body
FROM millrace_message WHERE queue_id = ? AND id = ?`
export const CANCEL =
  'DELETE FROM millrace_message WHERE queue_id = ? AND id = ? RETURNING ordering_key'
export const PURGEABLE = `
SELECT seq, length(body) AS bytes FROM millrace_message WHERE queue_id = ? AND state = ? LIMIT ?`

export const LIST_DEAD = `
SELECT * FROM millrace_dead_letter
WHERE queue_id = ? AND dead_at <= ? AND (dead_at, id) < (?, ?)
ORDER BY dead_at DESC, id DESC LIMIT ?`
export const LIST_DEAD_OF_CLASS = `
SELECT * FROM millrace_dead_letter INDEXED BY millrace_dead_letter_class
WHERE queue_id = ? AND error_class = ? AND dead_at <= ? AND (dead_at, id) < (?, ?)
ORDER BY dead_at DESC, id DESC LIMIT ?`
/** Without the body, and without the fair key, which lies behind it: SQLite would read through the one to the other. */
export const LIST_DEAD_BARE = `
SELECT id, dead_at, error_class, reason, owner, priority, sent_at, counted, crashes, redrives,
  throttled_since, idempotency_key, ordering_key, headers, records
FROM millrace_dead_letter
WHERE queue_id = ? AND dead_at <= ? AND (dead_at, id) < (?, ?)
ORDER BY dead_at DESC, id DESC LIMIT ?`
export const LIST_DEAD_BARE_OF_CLASS = `
SELECT id, dead_at, error_class, reason, owner, priority, sent_at, counted, crashes, redrives,
  throttled_since, idempotency_key, ordering_key, headers, records
FROM millrace_dead_letter INDEXED BY millrace_dead_letter_class
WHERE queue_id = ? AND error_class = ? AND dead_at <= ? AND (dead_at, id) < (?, ?)
ORDER BY dead_at DESC, id DESC LIMIT ?`
export const COUNT_DEAD =
  'SELECT count(*) AS n FROM millrace_dead_letter WHERE queue_id = ? AND dead_at <= ?'
export const COUNT_DEAD_OF_CLASS = `
SELECT count(*) AS n FROM millrace_dead_letter
WHERE queue_id = ? AND error_class = ? AND dead_at <= ?`
export const GET_DEAD = 'SELECT * FROM millrace_dead_letter WHERE queue_id = ? AND id = ?'
export const KEY_OF_DEAD =
  'SELECT ordering_key FROM millrace_dead_letter WHERE queue_id = ? AND id = ?'
/** SQLite tells the length of a body without reading it. */
export const BYTES_OF_DEAD = `
SELECT length(body) AS bytes FROM millrace_dead_letter
WHERE queue_id = (SELECT id FROM millrace_queue WHERE name = ?) AND id = ?`
export const REVIVE = `
INSERT INTO millrace_message
  (queue_id, id, state, priority, ready_at, sent_at, redrives, idempotency_key, ordering_key, fair_key,
   fair_weight, headers, records, body)
SELECT queue_id, id, ?, priority, ?, sent_at, min(redrives, 9007199254740990) + 1,
  idempotency_key, ordering_key, fair_key, fair_weight, headers, records, body
FROM millrace_dead_letter WHERE queue_id = ? AND id = ?
ON CONFLICT (queue_id, id) DO NOTHING`
export const REMOVE_DEAD = 'DELETE FROM millrace_dead_letter WHERE queue_id = ? AND id = ?'
export const ADD_AUDIT = `
INSERT INTO millrace_audit (queue_id, message_id, at, act, actor, reason) VALUES (?, ?, ?, ?, ?, ?)`
export const LIST_AUDIT = `
SELECT message_id, at, act, actor, reason FROM millrace_audit
WHERE queue_id = ? ORDER BY seq DESC LIMIT ?`

export const DATA_VERSION = 'PRAGMA data_version'
