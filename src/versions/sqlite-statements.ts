/** Versions travel as text: the clients read integers as numbers, which have 53 bits. */

/** Parameters: queue, key, version. Changes a row when it is newer than all before. */
export const APPLY_NEWER = `
INSERT INTO millrace_version_applied (queue, key, version) VALUES (?, ?, CAST(? AS INTEGER))
ON CONFLICT (queue, key) DO UPDATE SET version = excluded.version WHERE millrace_version_applied.version < excluded.version`

/** Parameters: queue, key, first version. */
export const BEGIN_KEY = `
INSERT INTO millrace_reorder_next (queue, key, next) VALUES (?, ?, CAST(? AS INTEGER))
ON CONFLICT (queue, key) DO NOTHING`

/** Parameters: queue, key. */
export const NEXT =
  'SELECT CAST(next AS TEXT) AS next FROM millrace_reorder_next WHERE queue = ? AND key = ?'

/** Parameters: next, queue, key. */
export const SET_NEXT =
  'UPDATE millrace_reorder_next SET next = CAST(? AS INTEGER) WHERE queue = ? AND key = ?'

/** Parameters: queue, key. */
export const COUNT =
  'SELECT count(*) AS n FROM millrace_reorder_waiting WHERE queue = ? AND key = ?'

/** Parameters: queue, key, version. */
export const IS_HERE = `
SELECT 1 FROM millrace_reorder_waiting WHERE queue = ? AND key = ? AND version = CAST(? AS INTEGER)`

/** Parameters: queue, key, version, payload, sent at. */
export const KEEP = `
INSERT INTO millrace_reorder_waiting (queue, key, version, payload, sent_at) VALUES (?, ?, CAST(? AS INTEGER), ?, ?)`

/** Parameters: queue, key, version, version. Those that wait from this version on, without a gap between them. */
export const DUE = `
SELECT payload FROM (
  SELECT version, payload, row_number() OVER (ORDER BY version) AS place
  FROM millrace_reorder_waiting WHERE queue = ? AND key = ? AND version >= CAST(? AS INTEGER))
WHERE version = CAST(? AS INTEGER) + place - 1
ORDER BY version`

/** Parameters: queue, key, version. */
export const FORGET_BELOW = `
DELETE FROM millrace_reorder_waiting WHERE queue = ? AND key = ? AND version < CAST(? AS INTEGER)`

/** Parameters: queue, key. */
export const LOWEST = `
SELECT CAST(min(version) AS TEXT) AS lowest FROM millrace_reorder_waiting WHERE queue = ? AND key = ?`

/** Parameters: queue, most rows. The gap that has waited longest first. */
export const GAPS = `
SELECT n.key, CAST(n.next AS TEXT) AS next, count(*) AS waiting, CAST(min(w.version) AS TEXT) AS lowest,
  min(w.sent_at) AS sent_at
FROM millrace_reorder_next AS n
JOIN millrace_reorder_waiting AS w ON w.queue = n.queue AND w.key = n.key
WHERE n.queue = ?
GROUP BY n.key, n.next
ORDER BY min(w.sent_at), n.key
LIMIT ?`
