/** Every statement on versions in Postgres; `{schema}` is replaced once. Versions travel as text: a number has 53 bits. */
export const postgresVersionStatements = {
  /** Parameters: queue, key, version. A row when it is newer than all before; waits for another transaction on this key. */
  APPLY_NEWER: `
INSERT INTO {schema}.version_applied AS a (queue, key, version) VALUES ($1::text, $2::text, $3::text::bigint)
ON CONFLICT (queue, key) DO UPDATE SET version = excluded.version WHERE a.version < excluded.version
RETURNING 1 AS applied`,

  /** Parameters: queue, key, first version. The key is ours until the transaction ends: its order is decided by one at a time. */
  LOCK_NEXT: `
INSERT INTO {schema}.reorder_next AS n (queue, key, next) VALUES ($1::text, $2::text, $3::text::bigint)
ON CONFLICT (queue, key) DO UPDATE SET next = n.next
RETURNING next::text AS next`,

  /** Parameters: queue, key, next. */
  SET_NEXT: `
UPDATE {schema}.reorder_next SET next = $3::text::bigint WHERE queue = $1::text AND key = $2::text`,

  /** Parameters: queue, key, version, payload, sent at, most waiting. Keeps one of each version; false when there is no room. */
  KEEP: `
WITH held AS (
  SELECT count(*) AS n, coalesce(bool_or(version = $3::text::bigint), false) AS here
  FROM {schema}.reorder_waiting WHERE queue = $1::text AND key = $2::text),
kept AS (
  INSERT INTO {schema}.reorder_waiting (queue, key, version, payload, sent_at)
  SELECT $1::text, $2::text, $3::text::bigint, $4::text, $5::text::bigint FROM held WHERE n < $6::int4 AND NOT here
  RETURNING 1)
SELECT here OR EXISTS (SELECT FROM kept) AS kept FROM held`,

  /** Parameters: queue, key, version. Those that wait from this version on, without a gap between them. */
  DUE: `
SELECT payload FROM (
  SELECT version, payload, row_number() OVER (ORDER BY version) AS place
  FROM {schema}.reorder_waiting WHERE queue = $1::text AND key = $2::text AND version >= $3::text::bigint) AS w
WHERE version = $3::text::bigint + place - 1
ORDER BY version`,

  /** Parameters: queue, key, version. */
  FORGET_BELOW: `
DELETE FROM {schema}.reorder_waiting WHERE queue = $1::text AND key = $2::text AND version < $3::text::bigint`,

  /** Parameters: queue, key. */
  LOWEST: `
SELECT min(version)::text AS lowest FROM {schema}.reorder_waiting WHERE queue = $1::text AND key = $2::text`,

  /** Parameters: queue, most rows. The gap that has waited longest first. */
  GAPS: `
SELECT n.key, n.next::text AS next, count(*)::int4 AS waiting, min(w.version)::text AS lowest, min(w.sent_at)::text AS sent_at
FROM {schema}.reorder_next AS n
JOIN {schema}.reorder_waiting AS w ON w.queue = n.queue AND w.key = n.key
WHERE n.queue = $1::text
GROUP BY n.key, n.next
ORDER BY min(w.sent_at), n.key
LIMIT $2::int4`,
} as const

export type PostgresVersionStatements = Readonly<
  Record<keyof typeof postgresVersionStatements, string>
>
