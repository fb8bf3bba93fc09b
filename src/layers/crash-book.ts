import { createHash } from 'node:crypto'
import type { Delivery } from '../model/delivery.ts'
import type { WrittenEntry } from '../store/journal.ts'
import type { Store } from '../store/store.ts'
import { chunks } from './chunks.ts'

/** Who has a suspect in hand, written where all workers see it. One entry for each message and copy of a queue. */
export interface CrashBook {
  /** By key; what is not in it has no entry. */
  read(keys: readonly string[]): Promise<ReadonlyMap<string, CrashEntry>>
  write(entries: ReadonlyMap<string, CrashEntry>): Promise<void>
  /** Without it they end by themselves. Never rejects. */
  forget(keys: readonly string[]): Promise<void>
}

/** What is known of a message, and who runs it: a holder, nobody, or nobody and only alone (`NOBODY_ALONE`). */
export type CrashEntry = Omit<WrittenEntry, 'id'>

/** As a runner: nobody has it, and whoever gets it runs it alone, because its last holder vanished. */
export const NOBODY_ALONE = 'nobody, alone'

/** An entry that nobody ended belongs to a message that its broker no longer has by then (see `journals`). */
const KEEP_MS = 30 * 86_400_000
/** Of an id in the store. */
const KEY_MAX = 255

/** A copy is another message than what it was made of, which may still be there. */
export function crashKeyOf({ envelope: { id, copy = 0 } }: Delivery): string {
  const key = `${copy} ${id}`
  if (key.length <= KEY_MAX) return key
  return `${copy} sha256-${createHash('sha256').update(id).digest('hex')}`
}

export function crashBook({ journal, traits }: Store, queue: string): CrashBook {
  const { batch } = traits.limits
  /** Journals of attempts are under the queue's own name. */
  const name = `crashes:${queue}`
  return {
    read: async (keys) => {
      const found = new Map<string, CrashEntry>()
      for (const part of chunks([...new Set(keys)], batch)) {
        const entries = await journal.read(name, part)
        for (const [i, key] of part.entries()) {
          const entry = entries[i]
          if (entry !== undefined) found.set(key, entry)
        }
      }
      return found
    },
    write: async (entries) => {
      const written = [...entries].map(([id, entry]) => ({ id, ...entry }))
      for (const part of chunks(written, batch)) await journal.write(name, part, KEEP_MS)
    },
    forget: async (keys) => {
      for (const part of chunks(keys, batch)) {
        await journal.forget(name, part).catch(() => undefined)
      }
    },
  }
}
