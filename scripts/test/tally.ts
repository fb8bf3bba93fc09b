import { relative } from 'node:path'
import { inspect } from 'node:util'

/** What a test event says; the part of node:test's event data that we read. */
export interface TestReport {
  readonly name: string
  /** The test file; undefined when the event is about the file as a whole, whose name is `name` then. */
  readonly entryFile?: string | undefined
  readonly skip?: string | boolean | undefined
  readonly details: {
    readonly type?: string | undefined
    readonly duration_ms: number
    readonly error?: unknown
  }
}

interface FileTally {
  passed: number
  failed: number
  skipped: number
  /** What the file wrote; shown when it failed. */
  output: string
  ms: number
}

export interface Totals {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** Reason to the number of tests that it skipped. */
  readonly reasons: ReadonlyMap<string, number>
  /** What failed, each with its file and the beginning of its error. */
  readonly failures: readonly string[]
}

/** Counts results and prints failures at once, in full, and one line for each file when it ends. */
export interface Tally {
  took(file: string, ms: number): void
  wrote(file: string, output: string): void
  passed(report: TestReport): void
  failed(report: TestReport): void
  /** A file has ended; one that ran no test has failed. */
  ended(file: string): void
  /** The run was stopped while these had not ended; they neither passed nor failed. */
  interrupted(files: readonly string[]): void
  totals(): Totals
}

/** Enough to see what went wrong, and not a whole log. */
const OUTPUT_SHOWN = 20_000
/** Of an error, in the list at the end: a difference of two values begins after its second line. */
const ERROR_LINES_SHOWN = 12

export function tally(root: string, print: (line: string) => void): Tally {
  const files = new Map<string, FileTally>()
  const reasons = new Map<string, number>()
  const failures: string[] = []
  const of = (file: string): FileTally => {
    const found = files.get(file) ?? emptyTally()
    files.set(file, found)
    return found
  }
  return {
    took(file, ms) {
      const entry = of(file)
      entry.ms = Math.max(entry.ms, ms)
    },
    wrote(file, output) {
      const entry = of(file)
      entry.output = (entry.output + output).slice(-OUTPUT_SHOWN)
    },
    passed({ entryFile, skip, details }) {
      if (entryFile === undefined || details.type === 'suite') return
      if (skip === undefined || skip === false) {
        of(entryFile).passed += 1
        return
      }
      of(entryFile).skipped += 1
      const reason = skip === true || skip === '' ? 'no reason given' : skip
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    },
    failed({ name, entryFile, details }) {
      // A suite or a file fails because a test in it did, and that one was counted and printed.
      const onlySubtests = isOnlyAboutSubtests(details.error)
      if (onlySubtests && (entryFile === undefined || details.type === 'suite')) return
      of(entryFile ?? name).failed += 1
      const title = entryFile === undefined ? '' : ` › ${name}`
      const what = `${relative(root, entryFile ?? name)}${title}`
      const error = inspect(rootOf(details.error), { depth: 6 })
      failures.push(`${what}\n${indent(beginningOf(error))}`)
      print(`\nFAILED ${what}`)
      print(indent(error))
    },
    ended(file) {
      const entry = of(file)
      if (entry.passed + entry.failed + entry.skipped === 0) {
        entry.failed += 1
        const what = `${relative(root, file)}: it ran no test`
        failures.push(what)
        print(`\nFAILED ${what}`)
      }
      if (entry.failed > 0 && entry.output !== '') print(indent(`it wrote:\n${entry.output}`))
      print(fileLine(relative(root, file), entry))
    },
    interrupted(left) {
      const names = left.map((file) => relative(root, file)).join(', ')
      print(`\nInterrupted. Not ended: ${names}`)
    },
    totals: () => ({ ...sum([...files.values()]), reasons, failures }),
  }
}

function emptyTally(): FileTally {
  return { passed: 0, failed: 0, skipped: 0, output: '', ms: 0 }
}

function isOnlyAboutSubtests(error: unknown): boolean {
  return error instanceof Error && 'failureType' in error && error.failureType === 'subtestsFailed'
}

/** node:test wraps what was thrown. */
function rootOf(error: unknown): unknown {
  return error instanceof Error && 'failureType' in error && error.cause ? error.cause : error
}

function sum(entries: readonly FileTally[]): { passed: number; failed: number; skipped: number } {
  const add = (field: 'passed' | 'failed' | 'skipped'): number =>
    entries.reduce((total, entry) => total + entry[field], 0)
  return { passed: add('passed'), failed: add('failed'), skipped: add('skipped') }
}

function fileLine(file: string, entry: FileTally): string {
  const { passed, failed, skipped, ms } = entry
  const counts = [`${passed} passed`]
  if (failed > 0) counts.push(`${failed} failed`)
  if (skipped > 0) counts.push(`${skipped} skipped`)
  const mark = failed > 0 ? 'FAIL' : 'ok  '
  return `${mark} ${file} (${counts.join(', ')}, ${(ms / 1_000).toFixed(1)} s)`
}

function beginningOf(error: string): string {
  return error.split('\n', ERROR_LINES_SHOWN).join('\n')
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '    ')
}
