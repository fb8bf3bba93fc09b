export const BEGIN = 'BEGIN IMMEDIATE'
/** For a handle of ours: whatever an effect made of the timeout, BEGIN must not block the process. One call, not two. */
export const BEGIN_AT_ONCE: string = `PRAGMA busy_timeout = 0; ${BEGIN}`
export const COMMIT = 'COMMIT'
export const ROLLBACK = 'ROLLBACK'
export const SAVEPOINT = 'SAVEPOINT millrace_effect'
export const RELEASE = 'RELEASE millrace_effect'
/** Not to be kept prepared: SQLite reads this pragma when it compiles the statement. */
export const READ_BUSY_TIMEOUT = 'PRAGMA busy_timeout'

/** Parameters: queue, key, now. */
export const SEEN = 'SELECT 1 FROM millrace_inbox WHERE queue = ? AND key = ? AND expires_at > ?'

/** Parameters: queue, key, now, expiry. Changes a row unless the key is there and has not expired. */
export const RECORD = `
INSERT INTO millrace_inbox (queue, key, recorded_at, expires_at) VALUES (?, ?, ?, ?)
ON CONFLICT (queue, key) DO UPDATE SET recorded_at = excluded.recorded_at, expires_at = excluded.expires_at
WHERE millrace_inbox.expires_at <= excluded.recorded_at`

/** Parameters: now, most rows. */
export const PRUNE = `
DELETE FROM millrace_inbox WHERE (queue, key) IN
  (SELECT queue, key FROM millrace_inbox WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`
