/** What keeps ordering keys in order, once. A message is behind (state 4) while an earlier one of its key has not ended. */

export const IS_KEY_TAKEN = `
SELECT EXISTS (SELECT 1 FROM millrace_message WHERE queue_id = ? AND ordering_key = ?)
  OR EXISTS (SELECT 1 FROM millrace_halted_key WHERE queue_id = ? AND ordering_key = ?) AS taken`

/** The next one of a key that is neither taken nor halted becomes its head. */
export const ADVANCE_KEY = `
UPDATE millrace_message SET state = iif(ready_at > ?, 1, iif(alone, 3, 0))
WHERE seq = (
  SELECT min(seq) FROM millrace_message WHERE queue_id = ? AND ordering_key = ? AND state = 4)
  AND NOT EXISTS (
    SELECT 1 FROM millrace_message AS head
    WHERE head.queue_id = millrace_message.queue_id
      AND head.ordering_key = millrace_message.ordering_key AND head.state < 4)
  AND NOT EXISTS (
    SELECT 1 FROM millrace_halted_key AS halted
    WHERE halted.queue_id = millrace_message.queue_id
      AND halted.ordering_key = millrace_message.ordering_key)`

/** Does nothing where deaths do not halt. */
export const HALT_KEY = `
INSERT OR REPLACE INTO millrace_halted_key (queue_id, ordering_key, message_id, halted_at)
SELECT id, ?, ?, ? FROM millrace_queue WHERE id = ? AND on_dead = 'halt-key'`

/** Does nothing unless this message halted it. */
export const UNHALT_KEY = `
DELETE FROM millrace_halted_key WHERE queue_id = ? AND ordering_key = ? AND message_id = ?`

export const LIST_HALTED = `
SELECT ordering_key, message_id, halted_at,
  (SELECT count(*) FROM millrace_message AS waiting
    WHERE waiting.queue_id = halted.queue_id AND waiting.ordering_key = halted.ordering_key) AS waiting
FROM millrace_halted_key AS halted
WHERE queue_id = ? AND ordering_key > ? ORDER BY ordering_key LIMIT ?`

export const GET_HALTED = `
SELECT ordering_key, message_id, halted_at,
  (SELECT count(*) FROM millrace_message AS waiting
    WHERE waiting.queue_id = halted.queue_id AND waiting.ordering_key = halted.ordering_key) AS waiting
FROM millrace_halted_key AS halted
WHERE queue_id = ? AND ordering_key = ?`

/** After a purge, and at a start: keys whose head was removed and that have waiting ones. Reads the index of all that have a key. */
export const LEADERLESS_KEYS = `
SELECT ordering_key FROM millrace_message
WHERE queue_id = ? AND ordering_key IS NOT NULL
GROUP BY ordering_key HAVING min(state) = 4`
