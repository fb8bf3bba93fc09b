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
/**
 * These kill and stop processes and servers of their own, and mostly wait for them: one file of each lane at a time. What starts
 * three JVMs or three Erlangs never stands beside another of its kind.
 */
const LANES: readonly (readonly [name: string, prefixes: readonly string[]])[] = [
  ['faults of Kafka and SQS', ['test/faults/kafka-', 'test/faults/sqs-']],
  ['faults of RabbitMQ and the rig', ['test/faults/rabbitmq', 'test/faults/rig']],
  ['other faults', ['test/faults/']],
]
/** These time what they run, and keep all processors busy: neighbours would only make it slow. */
const ALONE = ['test/bench/', 'test/faults/crash-']
/** Judges what the other files wrote down. */
const LAST = ['test/docs/guarantees.test.ts']

/**
 * The test files that `filters` name (files or folders; none: all), in the stages in which they run. The waves of one stage go on
 * side by side.
 */
export function stages(root: string, filters: readonly string[]): readonly (readonly Wave[])[] {
  const wanted = filters.map((filter) => relative(root, resolve(filter)))
  const files = globSync('test/**/*.test.ts', { cwd: root })
    .filter((file) => wanted.length === 0 || wanted.some((prefix) => isWithin(file, prefix)))
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
  const left = new Set(files)
  const take = (name: string, prefixes: readonly string[], concurrency = 1): Wave => {
    const own = [...left].filter((file) => prefixes.some((prefix) => file.startsWith(prefix)))
    for (const file of own) left.delete(file)
    return { name, concurrency, files: own.map((file) => join(root, file)) }
  }
  const last = take('last', LAST)
  const alone = take('alone', ALONE)
  const faults = LANES.map(([name, prefixes]) => take(name, prefixes))
  const together = take('together', [''], 2)
  return [[together], faults, [alone], [last]]
    .map((stage) => stage.filter((wave) => wave.files.length > 0))
    .filter((stage) => stage.length > 0)
}

function isWithin(file: string, prefix: string): boolean {
  return file === prefix || file.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)
}

function rank(file: string): number {
  const index = FIRST.findIndex((prefix) => file.startsWith(prefix))
  return index === -1 ? FIRST.length : index
}
