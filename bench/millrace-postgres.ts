import { postgresInbox } from 'millrace/inbox'
import { postgres } from 'millrace/postgres'
import pg from 'pg'
import { EFFECT_COUNT, EFFECT_INSERT, EFFECT_TABLE } from './effect-sql.ts'
import type { Store } from './store.ts'

const CONNECTIONS = 25

export function postgresStore(url: string): Store<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  return {
    transport: postgres({ pool }),
    inbox: postgresInbox({ pool }),
    async prepare() {
      await pool.query(EFFECT_TABLE)
    },
    async effect(tx, key, note) {
      await tx.query({ name: 'effect', text: EFFECT_INSERT, values: [key, note] })
    },
    async effects() {
      return Number((await pool.query(EFFECT_COUNT)).rows[0]?.count)
    },
    close: () => pool.end(),
  }
}
