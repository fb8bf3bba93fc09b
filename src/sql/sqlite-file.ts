import { type BigIntStats, statSync } from 'node:fs'

/** What can go wrong with an open file and no statement would tell: SQLite goes on with the file that it opened. */
export type FileProblems = () => readonly string[]

/** Remembers which file this path names now; the answer says when it names another one, or none. */
export function watchFile(file: string): FileProblems {
  const opened = look(file)
  return () => {
    const now = look(file)
    const what = typeof now === 'string' ? now : differs(opened, now)
    return what === undefined
      ? []
      : [
          `SQLite file ${file} ${what} while the app has it open: what it stores now is lost when it ends; ` +
            'move it back, or stop the app, put the right file there (from a backup) and start again',
        ]
  }
}

function differs(opened: Look, now: BigIntStats | undefined): string | undefined {
  if (now === undefined) return 'was deleted or moved'
  if (opened === undefined || typeof opened === 'string') return undefined
  const isSame = opened.ino === now.ino && opened.dev === now.dev
  return isSame ? undefined : 'was replaced by another'
}

/** Undefined: there is none. Text: it cannot be looked at. */
type Look = BigIntStats | string | undefined

function look(file: string): Look {
  try {
    return statSync(file, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    return `cannot be found any more (${code})`
  }
}
