import { globSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'

export interface Wave {
  readonly name: string
  readonly files: readonly string[]
  /** Files side by side. */
  readonly concurrency: number
}

/** Compilers and package managers take longest, so they start first. */
const FIRST = ['test/package/', 'test/docs/', 'test/types/', 'test/transports/']
/** These kill, stop and time processes: neighbours would only make them slow. */
const ALONE = ['test/faults/', 'test/bench/']
/** Judges what the other files wrote down. */
const LAST = ['test/docs/guarantees.test.ts']

/** The test files that `filters` name (files or folders; none: all), in the waves in which they run. */
export function waves(root: string, filters: readonly string[]): readonly Wave[] {
  const wanted = filters.map((filter) => relative(root, resolve(filter)))
  const files = globSync('test/**/*.test.ts', { cwd: root })
    .filter((file) => wanted.length === 0 || wanted.some((prefix) => isWithin(file, prefix)))
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
  const among = (prefixes: readonly string[]) => (file: string) =>
    prefixes.some((prefix) => file.startsWith(prefix))
  const last = files.filter(among(LAST))
  const alone = files.filter(among(ALONE))
  const together = files.filter((file) => !last.includes(file) && !alone.includes(file))
  return [
    { name: 'together', files: together, concurrency: 2 },
    { name: 'alone', files: alone, concurrency: 1 },
    { name: 'last', files: last, concurrency: 1 },
  ]
    .filter((wave) => wave.files.length > 0)
    .map((wave) => ({ ...wave, files: wave.files.map((file) => join(root, file)) }))
}

function isWithin(file: string, prefix: string): boolean {
  return file === prefix || file.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)
}

function rank(file: string): number {
  const index = FIRST.findIndex((prefix) => file.startsWith(prefix))
  return index === -1 ? FIRST.length : index
}
