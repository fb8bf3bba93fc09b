import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** An append-only file outside the library: what a process saw, written before it can die of it. */
export interface Recorder {
  note(event: RecordedEvent): void
}

export type RecordedEvent =
  /** The backend confirmed this key to the producer. */
  | { readonly what: 'sent'; readonly key: string }
  | { readonly what: 'started'; readonly key: string; readonly attempt: number }
  /** A handler came to its end. */
  | { readonly what: 'ended'; readonly key: string }
  | { readonly what: 'failed'; readonly key: string; readonly as: 'transient' | 'permanent' }
  /** From here on nothing fails for good any more, and dead letters are redriven. */
  | { readonly what: 'mended' }
  | { readonly what: 'killed'; readonly at: KillPoint }
  /** A redrive died around its first step at the backend. */
  | { readonly what: 'killed redrive'; readonly at: RedriveKillPoint }
  | { readonly what: 'stopped'; readonly pid: number }
  /** The effect of this key is committed. */
  | { readonly what: 'made'; readonly key: string }
  | { readonly what: 'refused'; readonly key: string; readonly code: string }

export const killPoints = [
  'before the handler',
  'in the effect',
  'after the commit, before the end',
  'before the settlement',
  'after the settlement',
] as const
export type KillPoint = (typeof killPoints)[number]

export const redriveKillPoints = ['before its step', 'after its step'] as const
export type RedriveKillPoint = (typeof redriveKillPoints)[number]

/** One line is one write of less than a page, so lines of several processes do not mix (O_APPEND). */
export function recorder(file: string): Recorder {
  return { note: (event) => appendFileSync(file, `${JSON.stringify(event)}\n`) }
}

export function recorded(file: string): readonly RecordedEvent[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as RecordedEvent)
}
