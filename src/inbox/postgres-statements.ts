import { limitSetting, unreadLimit } from '../sql/pg-setting.ts'

/** Every statement on the inbox in Postgres; `{schema}` is replaced once, at connect. */
export const postgresInboxStatements = {
  VERSION: `SELECT current_setting('server_version_num')::int4 AS version`,

  /**
   * First in each run. Parameters: limit in ms as text, name of the run. A shorter limit of the user's own stays. The
   * idle limit ends a process that was stopped between two statements, the statement limit one that waits in a statement.
   */
  LIMITS: `
SELECT
  ${limitSetting('idle_in_transaction_session_timeout', '$1')},
  ${limitSetting('statement_timeout', '$1')},
  ${unreadLimit('$1::text::float8')},
  set_config('millrace.run', $2::text, true)` as string,

  /** The same from Postgres 17 on, where the whole transaction has a limit of its own. */
  LIMITS_17: `
SELECT
  ${limitSetting('idle_in_transaction_session_timeout', '$1')},
  ${limitSetting('transaction_timeout', '$1')},
  ${unreadLimit('$1::text::float8')},
  set_config('millrace.run', $2::text, true)` as string,

  /**
   * Parameters: queue, key, ttl in ms, name of the run. Waits for another run that holds the key, then sees whether it
   * committed. The run's name is local to its transaction: when the effect ended that, the name is gone.
   */
  RECORD_IN_RUN: `
WITH recorded AS (
  INSERT INTO {schema}.inbox AS i (queue, key, recorded_at, expires_at)
  SELECT $1::text, $2::text, clock_timestamp(),
    clock_timestamp() + make_interval(secs => $3::float8 / 1000)
  WHERE current_setting('millrace.run', true) = $4::text
  ON CONFLICT (queue, key) DO UPDATE
    SET recorded_at = excluded.recorded_at, expires_at = excluded.expires_at
    WHERE i.expires_at <= clock_timestamp()
  RETURNING 1)
SELECT EXISTS (SELECT FROM recorded) AS recorded,
  coalesce(current_setting('millrace.run', true) = $4::text, false) AS open`,

  /** Parameters: queues, keys. Answers the places of those that were handled, from 1. */
  SEEN: `
SELECT k.place::int4 AS place
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (queue, key, place)
JOIN {schema}.inbox AS i ON i.queue = k.queue AND i.key = k.key
WHERE i.expires_at > clock_timestamp()`,

  /** Parameters: queues, keys, ttl in ms. Sorted, so that two batches never wait for each other in a circle. */
  RECORD: `
INSERT INTO {schema}.inbox AS i (queue, key, recorded_at, expires_at)
SELECT k.queue, k.key, now(), now() + make_interval(secs => $3::float8 / 1000)
FROM (SELECT DISTINCT queue, key FROM unnest($1::text[], $2::text[]) AS given (queue, key)) AS k
ORDER BY k.queue COLLATE "C", k.key COLLATE "C"
ON CONFLICT (queue, key) DO UPDATE
  SET recorded_at = excluded.recorded_at, expires_at = excluded.expires_at
  WHERE i.expires_at <= clock_timestamp()`,

  /** Parameter: most rows. */
  PRUNE: `
WITH pruned AS (
  DELETE FROM {schema}.inbox WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.inbox WHERE expires_at <= clock_timestamp()
    ORDER BY expires_at LIMIT $1::int4 FOR UPDATE SKIP LOCKED))
  RETURNING 1)
SELECT count(*)::int4 AS pruned FROM pruned`,
} as const

export type PostgresInboxStatements = Readonly<Record<keyof typeof postgresInboxStatements, string>>
