export const ADD = `
INSERT INTO millrace_outbox (id, aggregatetype, aggregateid, type, created_at, next_try_at, idempotency_key,
  ordering_key, priority, delay_ms, ready_at, remember, share, headers, payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (aggregatetype, id) DO NOTHING`

export const HAS_ROWS = 'SELECT 1 FROM millrace_outbox LIMIT 1'

/** Parameters: now, most rows. */
export const UNORDERED = `
SELECT * FROM millrace_outbox WHERE ordering_key IS NULL AND next_try_at <= ?
ORDER BY next_try_at, seq LIMIT ?`

/** The first row of the key after this one. Parameters: queue, key. */
export const NEXT_HEAD = `
SELECT aggregatetype, ordering_key, next_try_at FROM millrace_outbox
WHERE ordering_key IS NOT NULL AND (aggregatetype, ordering_key) > (?, ?)
ORDER BY aggregatetype, ordering_key, seq LIMIT 1`

/** Parameters: queue, key, most rows. */
export const OF_KEY = `
SELECT * FROM millrace_outbox WHERE aggregatetype = ? AND ordering_key = ? ORDER BY seq LIMIT ?`

/** Counted when it is taken, so that a relay that dies cannot forget to count. Parameters: claim, until, seq. */
export const CLAIM =
  'UPDATE millrace_outbox SET claimed_by = ?, next_try_at = ?, tries = tries + 1 WHERE seq = ?'

/** Parameters: until, claim. */
export const RENEW =
  'UPDATE millrace_outbox SET next_try_at = max(next_try_at, ?) WHERE claimed_by = ?'

/** Parameters: seq, claim. */
export const REMOVE = 'DELETE FROM millrace_outbox WHERE seq = ? AND claimed_by = ?'

/** Parameters: next try, reason, seq, claim. */
export const FAILED = `
UPDATE millrace_outbox SET claimed_by = NULL, next_try_at = ?, last_error = ?
WHERE seq = ? AND claimed_by = ?`

/** It was not handed out after all. Parameters: now, seq, claim. */
export const GIVE_BACK = `
UPDATE millrace_outbox SET claimed_by = NULL, next_try_at = ?, tries = tries - 1
WHERE seq = ? AND claimed_by = ?`

/** Parameters: queue, after which place, most rows. */
export const STUCK = `
SELECT seq, id, ordering_key, tries, last_error, created_at AS added_at, next_try_at FROM millrace_outbox
WHERE aggregatetype = ? AND tries > 0 AND seq > ? ORDER BY seq LIMIT ?`

/** One that a relay holds is not stuck: it may be on its way. Parameters: now, queue, id, now. */
export const RETRY = `
UPDATE millrace_outbox SET next_try_at = ?
WHERE aggregatetype = ? AND id = ? AND tries > 0 AND (claimed_by IS NULL OR next_try_at <= ?) RETURNING id`

/** Parameters as of RETRY; the first is not used but for having them alike. */
export const DISCARD = `
DELETE FROM millrace_outbox
WHERE ? IS NOT NULL AND aggregatetype = ? AND id = ? AND tries > 0
  AND (claimed_by IS NULL OR next_try_at <= ?) RETURNING id`

/** Parameters: now, queue, id, actor, reason. */
export const KEEP_AUDIT = `
INSERT INTO millrace_outbox_audit (at, queue, message_id, actor, reason) VALUES (?, ?, ?, ?, ?)`

/** Parameters: queue, most rows. */
export const AUDIT = `
SELECT at, message_id, actor, reason FROM millrace_outbox_audit WHERE queue = ? ORDER BY seq DESC LIMIT ?`

export const LAG = `
SELECT count(*) AS n, (SELECT created_at FROM millrace_outbox ORDER BY seq LIMIT 1) AS oldest
FROM millrace_outbox`
