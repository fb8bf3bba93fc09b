import { globSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import type { Depth } from './depth.ts'

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
  [
    'faults of Kafka, SQS and order',
    ['test/faults/kafka-', 'test/faults/sqs-', 'test/faults/order-'],
  ],
  ['faults of RabbitMQ and the rig', ['test/faults/rabbitmq', 'test/faults/rig']],
  ['other faults', ['test/faults/']],
]
const AT_HOME: typeof LANES = [['faults', ['test/faults/']]]
/** These time what they run, and keep all processors busy: neighbours would only make it slow. */
const ALONE = ['test/bench/', 'test/faults/crash-']
/** Minutes each: at home only when they are named. Another test of each kind stays. */
const NOT_AT_HOME = [
  'test/faults/concurrency-limit.test.ts',
  'test/faults/crash-brokers.test.ts',
  'test/faults/crash-kafka.test.ts',
  'test/faults/crash-postgres.test.ts',
  'test/faults/crash-redis.test.ts',
  'test/faults/frozen-close.test.ts',
  'test/faults/kafka-between.test.ts',
  'test/faults/kafka-cluster.test.ts',
  'test/faults/kafka-letters-unreadable.test.ts',
  'test/faults/kafka-lost-answers.test.ts',
  'test/faults/kafka-order.test.ts',
  'test/faults/kafka-server.test.ts',
  'test/faults/kafka-silence.test.ts',
  'test/faults/kafka-strict.test.ts',
  'test/faults/nats-cluster.test.ts',
  'test/faults/nats-lanes-cluster.test.ts',
  'test/faults/network-effects.test.ts',
  'test/faults/network-order.test.ts',
  'test/faults/order-killed.test.ts',
  'test/faults/poison-living.test.ts',
  'test/faults/poison.test.ts',
  'test/faults/postgres-unread.test.ts',
  'test/faults/rabbitmq-cluster.test.ts',
  'test/faults/rabbitmq-effects.test.ts',
  'test/faults/rabbitmq-lanes-cluster.test.ts',
  'test/faults/redis-settings.test.ts',
  'test/faults/rig-servers.test.ts',
  'test/faults/sqs-server.test.ts',
  'test/flow/order-behind-limits.test.ts',
  'test/transports/cli-on-servers.test.ts',
  'test/transports/outbox-processes.test.ts',
  'test/transports/postgres-held-keys.test.ts',
  'test/transports/rabbitmq-bindings.test.ts',
  'test/transports/stood-still.test.ts',
  'test/unit/conformance/mutants.test.ts',
]
/** Judges what the other files wrote down. */
const LAST = ['test/docs/guarantees.test.ts']

/**
 * The test files that `filters` name (files or folders; none: all) at this depth, in the stages in which they run. The waves of one
 * stage go on side by side.
 */
export function stages(
  root: string,
  filters: readonly string[],
  depth: Depth,
): readonly (readonly Wave[])[] {
  const out = leftOut(root, filters, depth)
  const files = chosen(root, filters)
    .filter((file) => !out.includes(file))
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
  const left = new Set(files)
  const take = (name: string, prefixes: readonly string[], concurrency = 1): Wave => {
    const own = [...left].filter((file) => prefixes.some((prefix) => file.startsWith(prefix)))
    for (const file of own) left.delete(file)
    return { name, concurrency, files: own.map((file) => join(root, file)) }
  }
  const last = take('last', LAST)
  const alone = take('alone', ALONE)
  // What is left of the faults at home mostly waits: one file of them at a time fills the gaps of the others.
  const lanes = depth === 'quick' ? AT_HOME : LANES
  const faults = lanes.map(([name, prefixes]) => take(name, prefixes))
  // At home many wait for what takes its time on a server; a third one fills those gaps.
  const together = take('together', [''], depth === 'quick' ? 3 : 2)
  const first = depth === 'quick' ? [[together, ...faults]] : [[together], faults]
  return [...first, [alone], [last]]
    .map((stage) => stage.filter((wave) => wave.files.length > 0))
    .filter((stage) => stage.length > 0)
}

/** What `filters` name and this depth leaves out. A file that is named itself runs at every depth. */
export function leftOut(root: string, filters: readonly string[], depth: Depth): readonly string[] {
  if (depth !== 'quick') return []
  const named = filters.map((filter) => relative(root, resolve(filter)))
  return chosen(root, filters).filter((file) => NOT_AT_HOME.includes(file) && !named.includes(file))
}

function chosen(root: string, filters: readonly string[]): readonly string[] {
  const wanted = filters.map((filter) => relative(root, resolve(filter)))
  return globSync('test/**/*.test.ts', { cwd: root })
    .filter((file) => wanted.length === 0 || wanted.some((prefix) => isWithin(file, prefix)))
    .sort()
}

function isWithin(file: string, prefix: string): boolean {
  return file === prefix || file.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)
}

function rank(file: string): number {
  const index = FIRST.findIndex((prefix) => file.startsWith(prefix))
  return index === -1 ? FIRST.length : index
}
