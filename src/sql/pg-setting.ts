/**
 * SQL that limits a time for the rest of this transaction; a shorter limit of the user's own stays.
 * @param ms SQL of the limit in ms as text: a parameter, or a literal
 */
export function limitSetting(name: string, ms: string): string {
  return `set_config('${name}', CASE
    WHEN extract(epoch FROM current_setting('${name}')::interval)
      BETWEEN 0.001 AND ${ms}::text::float8 / 1000
    THEN current_setting('${name}') ELSE ${ms}::text END, true)`
}

/** A process whose event loop is busy reads late; one that has not read for this long is taken for one that is stopped. */
export const UNREAD_MS = 10_000

/**
 * SQL that ends the connection when nobody reads an answer for so long, for the rest of this transaction or session. A process that is
 * stopped in the middle of an answer that is larger than the buffers of two systems (some MB) leaves the server waiting in its write,
 * where it looks at none of its other limits, with all that the transaction has locked. Only Linux has it; other servers would log
 * each time that they do not.
 * @param ms SQL of the limit in ms as a number: a parameter, or a literal
 */
export function unreadLimit(
  ms: string,
  { local = true }: { readonly local?: boolean } = {},
): string {
  const now = `current_setting('${UNREAD}')`
  return `CASE WHEN version() LIKE '%linux%' THEN set_config('${UNREAD}',
    CASE WHEN ${now}::bigint BETWEEN 1 AND ${ms} THEN ${now} ELSE ceil(${ms})::text END, ${local}) END`
}

const UNREAD = 'tcp_user_timeout'
