import type { Clock } from '../../model/clock.ts'
import type { Journal, JournalEntry } from '../../store/journal.ts'
import type { EndingRows } from './ending-rows.ts'

export function memoryJournal(rows: EndingRows<JournalEntry>, clock: Clock): Journal {
  const nameOf = (queue: string, id: string): string => `${queue}\n${id}`
  return {
    async read(queue, ids) {
      const now = clock.now()
      return ids.map((id) => rows.get(nameOf(queue, id), now))
    },
    async write(queue, batch, keepMs) {
      const endsAt = clock.now() + keepMs
      for (const { id, history, runner } of batch) {
        rows.set(nameOf(queue, id), { history, runner }, endsAt)
      }
    },
    async forget(queue, ids) {
      for (const id of ids) rows.remove(nameOf(queue, id))
    },
  }
}
