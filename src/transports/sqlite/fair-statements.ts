/** What shares out turns by fair key, once; see `fair-share.ts` of the seam. */

/** What became ready in this transaction and has a fair key. */
export const ARRIVED = `
SELECT seq, priority, fair_key, fair_weight FROM millrace_message
WHERE queue_id = ? AND state = 0 AND fair_key IS NOT NULL
ORDER BY ready_at, seq`
export const FRONT_OF_LINE = `
SELECT place FROM millrace_message WHERE queue_id = ? AND state = -1 AND priority = ?
ORDER BY place, seq LIMIT 1`
export const LAST_OF_SHARE = `
SELECT place FROM millrace_message
WHERE queue_id = ? AND state = -1 AND priority = ? AND fair_key = ?
ORDER BY place DESC LIMIT 1`
export const GIVE_PLACE = 'UPDATE millrace_message SET state = -1, place = ? WHERE seq = ?'

/** The next lower priority that has a line of fair keys. */
export const NEXT_FAIR_LINE = `
SELECT priority FROM millrace_message WHERE queue_id = ? AND state = -1 AND priority < ?
ORDER BY priority DESC, place, seq LIMIT 1`
export const OLDEST_OF_FAIR_LINE = `
SELECT ready_at FROM millrace_message WHERE queue_id = ? AND state = -1 AND priority = ?
ORDER BY ready_at LIMIT 1`
export const CLAIM_FAIR_LINE = `
UPDATE millrace_message
SET state = 2, lease_until = ?, fence = ?, deliveries = min(deliveries, 9007199254740990) + 1
WHERE seq IN (
  SELECT seq FROM millrace_message WHERE queue_id = ? AND state = -1 AND priority = ?
  ORDER BY place, seq LIMIT ?)
RETURNING seq, id, priority, sent_at, ready_at, place, deliveries, alone, throttled_since,
  min(counted, 9007199254740991) AS counted,
  min(crashes, 9007199254740991) AS crashes,
  min(redrives, 9007199254740991) AS redrives,
  idempotency_key, ordering_key, fair_key, fair_weight, headers, records, body`
