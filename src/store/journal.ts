import type { AttemptHistory } from '../model/history.ts'

/** What happened to messages that stay where they are (ordered queues), and who runs one right now (crash marks). */
export interface Journal {
  /** One per id, in order; undefined when nothing is written or it was forgotten. */
  read(queue: string, ids: readonly string[]): Promise<readonly (JournalEntry | undefined)[]>
  /** Writes each whole; kept for `keepMs` from now. */
  write(queue: string, batch: readonly WrittenEntry[], keepMs: number): Promise<void>
  /** When the message has ended. Harmless when repeated. */
  forget(queue: string, ids: readonly string[]): Promise<void>
}

export interface JournalEntry {
  readonly history: AttemptHistory
  /** Who began a run and has not ended it; undefined when nobody runs it. */
  readonly runner: string | undefined
}

export interface WrittenEntry extends JournalEntry {
  readonly id: string
}
