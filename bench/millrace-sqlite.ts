import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { sqliteInbox } from 'millrace/inbox'
import { sqlite } from 'millrace/sqlite'
import type { Store } from './store.ts'

const TABLE = 'CREATE TABLE effects (key TEXT PRIMARY KEY, note TEXT NOT NULL)'
const INSERT = 'INSERT INTO effects VALUES (?, ?)'
const COUNT = 'SELECT count(*) AS count FROM effects'

export function sqliteStore(file: string, synchronous: 'full' | 'normal'): Store<DatabaseSync> {
  const inserts = new WeakMap<DatabaseSync, StatementSync>()
  const inbox = sqliteInbox({ file, synchronous })
  const own = new DatabaseSync(file)
  return {
    transport: sqlite({ file, synchronous }),
    inbox,
    async prepare() {
      own.exec(TABLE)
    },
    effect(tx, key, note) {
      let insert = inserts.get(tx)
      if (!insert) {
        insert = tx.prepare(INSERT)
        inserts.set(tx, insert)
      }
      insert.run(key, note)
    },
    effects: async () => Number(own.prepare(COUNT).get()?.count),
    close: async () => own.close(),
  }
}
