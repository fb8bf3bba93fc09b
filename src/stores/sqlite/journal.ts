import { asRow, prepared } from '../../sql/sqlite-handle.ts'
import type { Journal, JournalEntry } from '../../store/journal.ts'
import { historyFrom } from '../stored-message.ts'
import type { Database } from './database.ts'
import { FORGET_ENTRY, READ_ENTRY, WRITE_ENTRY } from './statements.ts'

export function sqliteJournal({ handle, now, read, write }: Database): Journal {
  return {
    read: (queue, ids) =>
      read(() => {
        const at = now()
        return ids.map((id) => entryOf(prepared(handle, READ_ENTRY).get(queue, id, at)))
      }),
    write: (queue, batch, keepMs) =>
      write(() => {
        const endsAt = now() + keepMs
        for (const { id, history, runner } of batch) {
          const values = [id, JSON.stringify(history), runner ?? null, endsAt]
          prepared(handle, WRITE_ENTRY).run(queue, ...values)
        }
      }),
    forget: (queue, ids) =>
      write(() => {
        for (const id of ids) prepared(handle, FORGET_ENTRY).run(queue, id)
      }),
  }
}

function entryOf(found: unknown): JournalEntry | undefined {
  if (found === undefined) return undefined
  const { history, runner } = asRow(found)
  return {
    history: historyFrom(String(history)),
    runner: typeof runner === 'string' ? runner : undefined,
  }
}
