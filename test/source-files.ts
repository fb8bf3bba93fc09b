import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from './code-scan.ts'

export const ROOT: string = join(import.meta.dirname, '..')

/** Files that belong to the project: known to git, or new and not ignored; relative to the root. */
export function projectFiles(pattern: RegExp): readonly string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate']
  const deleted = new Set(git(['ls-files', '--deleted']))
  return git(args).filter((file) => pattern.test(file) && !deleted.has(file))
}

function git(args: readonly string[]): readonly string[] {
  const text = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' })
  return text.split('\n').filter((line) => line !== '')
}

export function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}

/** One import of a source file, as written. */
export interface Import {
  readonly specifier: string
  readonly typeOnly: boolean
  /** `import('…')`: loaded when the line runs. */
  readonly dynamic: boolean
}

const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s+)?(?:[\w$*\s{},]+?\s+from\s+)?'([^']+)'|\bimport\('([^']+)'\)/g

export function importsOf(text: string): readonly Import[] {
  return [...text.matchAll(IMPORT)].map(([, , type, statik, dynamic]) => ({
    specifier: statik ?? dynamic ?? '',
    typeOnly: type !== undefined,
    dynamic: dynamic !== undefined,
  }))
}

interface Lines {
  readonly text: readonly string[]
  readonly code: readonly string[]
}

/** Each rule looks at all files again. */
const scanned = new Map<string, Lines>()

function linesOf(file: string): Lines {
  const known = scanned.get(file)
  if (known !== undefined) return known
  const text = read(file)
  const lines = { text: text.split('\n'), code: codeOf(text).split('\n') }
  scanned.set(file, lines)
  return lines
}

/** `file:line: text` for each line of the file's code that matches. */
export function findInCode(file: string, pattern: RegExp): readonly string[] {
  const { text, code } = linesOf(file)
  return code.flatMap((line, i) =>
    pattern.test(line) ? [`${file}:${i + 1}: ${text[i]?.trim()}`] : [],
  )
}
