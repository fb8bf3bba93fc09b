import { textArray } from '../../sql/pg-array.ts'
import type { Journal, JournalEntry } from '../../store/journal.ts'
import { historyFrom } from '../stored-message.ts'
import type { Database } from './database.ts'

export function postgresJournal({ sql, query }: Database): Journal {
  return {
    async read(queue, ids) {
      const entries = new Array<JournalEntry | undefined>(ids.length).fill(undefined)
      for (const row of await query(sql.READ_ENTRIES, [queue, textArray(ids)])) {
        entries[Number(row.place) - 1] = {
          history: historyFrom(String(row.history)),
          runner: typeof row.runner === 'string' ? row.runner : undefined,
        }
      }
      return entries
    },
    async write(queue, batch, keepMs) {
      const last = [...new Map(batch.map((entry) => [entry.id, entry])).values()]
      await query(sql.WRITE_ENTRIES, [
        queue,
        textArray(last.map(({ id }) => id)),
        textArray(last.map(({ history }) => JSON.stringify(history))),
        textArray(last.map(({ runner }) => runner ?? null)),
        keepMs,
      ])
    },
    async forget(queue, ids) {
      await query(sql.FORGET_ENTRIES, [queue, textArray(ids)])
    },
  }
}
