/** Every statement of the store, once. */

export const FIND_KEY = `
SELECT message_id, fingerprint, confirmed FROM millrace_store_key
WHERE queue = ? AND kind = ? AND key = ? AND expires_at > ?`
/** Parameters: queue, kind, key, message, fingerprint, confirmed, expiry. */
export const HOLD_KEY = `
INSERT OR REPLACE INTO millrace_store_key
  (queue, kind, key, message_id, fingerprint, confirmed, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?)`
export const FREE_KEY = `
DELETE FROM millrace_store_key
WHERE queue = ? AND kind = ? AND key = ? AND message_id = ? AND confirmed = 0`

/** A taken one makes room for the one that is put anew. */
export const REMOVE_TAKEN =
  'DELETE FROM millrace_store_delayed WHERE queue = ? AND id = ? AND taken = 1'
/** Parameters: queue, id, due, open, message, body. */
export const PUT_DELAYED = `
INSERT INTO millrace_store_delayed (queue, id, due_at, open_at, message, body)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (queue, id) DO NOTHING`
export const HAS_OPEN =
  'SELECT 1 AS found FROM millrace_store_delayed WHERE queue = ? AND open_at <= ? LIMIT 1'
export const LIST_OPEN = `
SELECT seq, id, due_at, message, body FROM millrace_store_delayed
WHERE queue = ? AND open_at <= ? ORDER BY open_at, seq LIMIT ?`
export const TAKE_DELAYED = 'UPDATE millrace_store_delayed SET open_at = ?, taken = 1 WHERE seq = ?'
export const REMOVE_SENT =
  'DELETE FROM millrace_store_delayed WHERE queue = ? AND id = ? AND seq = ?'
export const REMOVE_DELAYED = 'DELETE FROM millrace_store_delayed WHERE queue = ? AND id = ?'
export const GET_DELAYED =
  'SELECT seq, id, due_at, message, body FROM millrace_store_delayed WHERE queue = ? AND id = ?'
export const COUNT_DELAYED = 'SELECT count(*) AS n FROM millrace_store_delayed WHERE queue = ?'
export const NEXT_OPEN =
  'SELECT min(open_at) AS open_at FROM millrace_store_delayed WHERE queue = ?'

/** Parameters: queue, id, dead at, class, letter, message, body. */
export const PUT_LETTER = `
INSERT INTO millrace_store_dead_letter (queue, id, dead_at, error_class, letter, message, body)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, id) DO UPDATE SET
  dead_at = max(excluded.dead_at, millrace_store_dead_letter.dead_at + 1),
  error_class = excluded.error_class, letter = excluded.letter, message = excluded.message, body = excluded.body`
export const LIST_LETTERS = `
SELECT * FROM millrace_store_dead_letter
WHERE queue = ? AND dead_at <= ? AND (dead_at, id) < (?, ?)
ORDER BY dead_at DESC, id DESC LIMIT ?`
export const LIST_LETTERS_OF_CLASS = `
SELECT * FROM millrace_store_dead_letter INDEXED BY millrace_store_dead_letter_class
WHERE queue = ? AND error_class = ? AND dead_at <= ? AND (dead_at, id) < (?, ?)
ORDER BY dead_at DESC, id DESC LIMIT ?`
export const LIST_LETTERS_BARE = `
SELECT queue, id, dead_at, error_class, letter, message FROM millrace_store_dead_letter
WHERE queue = ? AND dead_at <= ? AND (dead_at, id) < (?, ?)
ORDER BY dead_at DESC, id DESC LIMIT ?`
export const LIST_LETTERS_BARE_OF_CLASS = `
SELECT queue, id, dead_at, error_class, letter, message
FROM millrace_store_dead_letter INDEXED BY millrace_store_dead_letter_class
WHERE queue = ? AND error_class = ? AND dead_at <= ? AND (dead_at, id) < (?, ?)
ORDER BY dead_at DESC, id DESC LIMIT ?`
export const GET_LETTER = 'SELECT * FROM millrace_store_dead_letter WHERE queue = ? AND id = ?'
export const COUNT_LETTERS =
  'SELECT count(*) AS n FROM millrace_store_dead_letter WHERE queue = ? AND dead_at <= ?'
export const COUNT_LETTERS_OF_CLASS = `
SELECT count(*) AS n FROM millrace_store_dead_letter INDEXED BY millrace_store_dead_letter_class
WHERE queue = ? AND error_class = ? AND dead_at <= ?`
export const HAS_LETTER =
  'SELECT 1 AS found FROM millrace_store_dead_letter WHERE queue = ? AND id = ?'
/** SQLite tells the length of a body without reading it. */
export const BYTES_OF_LETTER =
  'SELECT length(body) AS bytes FROM millrace_store_dead_letter WHERE queue = ? AND id = ?'
export const REMOVE_LETTER = 'DELETE FROM millrace_store_dead_letter WHERE queue = ? AND id = ?'
export const REMOVE_LETTER_OF =
  'DELETE FROM millrace_store_dead_letter WHERE queue = ? AND id = ? AND dead_at = ?'
/** Parameters: queue, message, at, act, actor, reason. */
export const ADD_AUDIT = `
INSERT INTO millrace_store_audit (queue, message_id, at, act, actor, reason)
VALUES (?, ?, ?, ?, ?, ?)`
export const LIST_AUDIT =
  'SELECT * FROM millrace_store_audit WHERE queue = ? ORDER BY seq DESC LIMIT ?'

export const READ_ENTRY = `
SELECT history, runner FROM millrace_store_journal WHERE queue = ? AND id = ? AND expires_at > ?`
/** Parameters: queue, id, history, runner, expiry. */
export const WRITE_ENTRY = `
INSERT OR REPLACE INTO millrace_store_journal (queue, id, history, runner, expires_at)
VALUES (?, ?, ?, ?, ?)`
export const FORGET_ENTRY = 'DELETE FROM millrace_store_journal WHERE queue = ? AND id = ?'

export const FIND_LEASE =
  'SELECT holder, fence FROM millrace_store_lease WHERE name = ? AND expires_at > ?'
export const NEXT_FENCE = 'UPDATE millrace_store_fence SET value = value + 1 RETURNING value'
/** Parameters: name, holder, fence, expiry. */
export const HOLD_LEASE = `
INSERT OR REPLACE INTO millrace_store_lease (name, holder, fence, expires_at) VALUES (?, ?, ?, ?)`
/** Parameters: expiry, name, holder, fence, now. */
export const RENEW_LEASE = `
UPDATE millrace_store_lease SET expires_at = ?
WHERE name = ? AND holder = ? AND fence = ? AND expires_at > ?`
export const RELEASE_LEASE =
  'DELETE FROM millrace_store_lease WHERE name = ? AND holder = ? AND fence = ?'

/** Before slots are counted to be given. */
export const END_SLOTS = 'DELETE FROM millrace_store_slot WHERE pool = ? AND expires_at <= ?'
export const FIND_SLOT = 'SELECT fence FROM millrace_store_slot WHERE pool = ? AND holder = ?'
export const COUNT_SLOTS =
  'SELECT count(*) AS n FROM millrace_store_slot WHERE pool = ? AND expires_at > ?'
export const COUNT_SLOTS_OF_KEY =
  'SELECT count(*) AS n FROM millrace_store_slot WHERE pool = ? AND key = ?'
/** Parameters: pool, now, most keys. */
export const COUNT_SLOTS_OF_KEYS = `
SELECT key, count(*) AS n FROM millrace_store_slot
WHERE pool = ? AND key IS NOT NULL AND expires_at > ? GROUP BY key ORDER BY n DESC, key LIMIT ?`
/** Parameters: pool, holder, key, fence, expiry. */
export const ADD_SLOT = `
INSERT INTO millrace_store_slot (pool, holder, key, fence, expires_at) VALUES (?, ?, ?, ?, ?)`
export const EXTEND_SLOT =
  'UPDATE millrace_store_slot SET expires_at = ? WHERE pool = ? AND holder = ?'
/** Parameters: expiry, pool, holder, fence, now. */
export const RENEW_SLOT = `
UPDATE millrace_store_slot SET expires_at = ?
WHERE pool = ? AND holder = ? AND fence = ? AND expires_at > ?`
export const RELEASE_SLOT =
  'DELETE FROM millrace_store_slot WHERE pool = ? AND holder = ? AND fence = ?'

export const FIND_BUCKET = 'SELECT tokens, at, expires_at FROM millrace_store_bucket WHERE name = ?'
/** Parameters: name, tokens, at, expiry. */
export const SET_BUCKET = `
INSERT OR REPLACE INTO millrace_store_bucket (name, tokens, at, expires_at) VALUES (?, ?, ?, ?)`

export const FIND_COUNTER =
  'SELECT value, expires_at FROM millrace_store_counter WHERE name = ? AND expires_at > ?'
/** Parameters: name, value, expiry. */
export const SET_COUNTER = `
INSERT OR REPLACE INTO millrace_store_counter (name, value, expires_at) VALUES (?, ?, ?)`

export const READ_STATE = 'SELECT value, version FROM millrace_store_state WHERE name = ?'
export const MAKE_STATE = `
INSERT INTO millrace_store_state (name, value, version) VALUES (?, ?, 1)
ON CONFLICT (name) DO NOTHING RETURNING version`
/** Parameters: value, name, version. */
export const SWAP_STATE = `
UPDATE millrace_store_state SET value = ?, version = version + 1 WHERE name = ? AND version = ?
RETURNING version`

/** Parameters of each: now, most rows. */
export const PRUNES: readonly string[] = [
  `DELETE FROM millrace_store_key WHERE (queue, kind, key) IN
  (SELECT queue, kind, key FROM millrace_store_key WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`,
  `DELETE FROM millrace_store_journal WHERE (queue, id) IN
  (SELECT queue, id FROM millrace_store_journal WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`,
  `DELETE FROM millrace_store_lease WHERE name IN
  (SELECT name FROM millrace_store_lease WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`,
  `DELETE FROM millrace_store_slot WHERE (pool, holder) IN
  (SELECT pool, holder FROM millrace_store_slot WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`,
  `DELETE FROM millrace_store_bucket WHERE name IN
  (SELECT name FROM millrace_store_bucket WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`,
  `DELETE FROM millrace_store_counter WHERE name IN
  (SELECT name FROM millrace_store_counter WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`,
]
