/** The effect of a handler on Postgres, the same for every contender. */
export const EFFECT_TABLE = 'CREATE TABLE effects (key text PRIMARY KEY, note text NOT NULL)'
export const EFFECT_INSERT = 'INSERT INTO effects VALUES ($1, $2) ON CONFLICT DO NOTHING'
export const EFFECT_COUNT = 'SELECT count(*) AS count FROM effects'
