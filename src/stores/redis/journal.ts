import type { Reply } from '../../redis/wire.ts'
import type { Journal, JournalEntry } from '../../store/journal.ts'
import { historyFrom } from '../stored-message.ts'
import { type Database, listOf, steps, wholeMs } from './database.ts'

export function redisJournal({ run, key }: Database): Journal {
  const keysOf = (queue: string, ids: readonly string[]): readonly string[] =>
    ids.map((id) => key(queue, `entry:${id}`))
  return {
    async read(queue, ids) {
      const entries: (JournalEntry | undefined)[] = []
      for (const step of steps(ids)) {
        const reply = await run('READ_ENTRIES', keysOf(queue, step), [])
        entries.push(...listOf(reply).map(entryOf))
      }
      return entries
    },
    async write(queue, batch, keepMs) {
      for (const step of steps(batch)) {
        const keys = keysOf(
          queue,
          step.map(({ id }) => id),
        )
        const texts = step.map(({ history, runner }) => JSON.stringify([history, runner ?? null]))
        await run('WRITE_ENTRIES', keys, [wholeMs(keepMs), ...texts])
      }
    },
    async forget(queue, ids) {
      for (const step of steps(ids)) await run('FORGET_ENTRIES', keysOf(queue, step), [])
    },
  }
}

function entryOf(reply: Reply): JournalEntry | undefined {
  if (reply === null) return undefined
  const [history, runner]: readonly unknown[] = JSON.parse(String(reply))
  return {
    history: historyFrom(JSON.stringify(history)),
    runner: typeof runner === 'string' ? runner : undefined,
  }
}
