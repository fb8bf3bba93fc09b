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
