import type { ConsumerConfig, StreamConfig } from '@nats-io/jetstream'
import { OptionsError } from '../../model/errors.ts'
import type { QueueSpec } from '../../transport/transport.ts'
import { consumerDifferences, queueDifferences, shelfDifferences } from './differences.ts'
import type { QueueNames } from './names.ts'
import { nanos } from './nanos.ts'
import { queueNames, type Store } from './store.ts'

/** Makes what is missing and refuses what would lose messages; what is there already is never changed. */
export async function ensure(
  store: Store,
  queues: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<void> {
  const found: string[] = []
  for (const spec of new Map(queues.map((queue) => [queue.name, queue])).values()) {
    signal.throwIfAborted()
    found.push(...(await ensureOne(store, spec)))
  }
  if (found.length > 0) throw new OptionsError('nats', found)
}

async function ensureOne(store: Store, spec: QueueSpec): Promise<readonly string[]> {
  const names = queueNames(store, spec.name)
  if (store.settings.topology !== 'none') {
    const differences = await compared(store, names, spec.horizonMs)
    if (differences.length > 0) return differences
  }
  await store.client.manager.jetstream().publish(names.fact('owner'), spec.owner)
  return []
}

async function compared(
  store: Store,
  names: QueueNames,
  horizonMs: number | undefined,
): Promise<readonly string[]> {
  const queue = await streamOf(store, queueStream(store, names))
  const shelf = await streamOf(store, shelfStream(store, names))
  const lacks = (what: string): readonly string[] => [absent(names, what)]
  const consumer = queue && (await consumerOf(store, names))
  return [
    ...(queue ? queueDifferences(names, queue, store, horizonMs) : lacks(`stream ${names.stream}`)),
    ...(shelf ? shelfDifferences(names, shelf, store) : lacks(`stream ${names.shelf}`)),
    ...(consumer ? consumerDifferences(names, consumer) : lacks(`consumer ${names.consumer}`)),
  ]
}

function absent({ queue }: QueueNames, what: string): string {
  return `topology: queue "${queue}" needs ${what}, which is not there; create it, or pass topology: 'create'`
}

async function streamOf(
  { client: { manager }, settings }: Store,
  wanted: StreamSpec,
): Promise<StreamConfig | undefined> {
  const there = await orMissing(manager.streams.info(wanted.name))
  if (there !== undefined || settings.topology === 'check') return there?.config
  try {
    return (await manager.streams.add(wanted)).config
  } catch (error) {
    // Somebody else was faster, with other settings; what counts is what is there now.
    const theirs = await orMissing(manager.streams.info(wanted.name))
    if (theirs === undefined) throw error
    return theirs.config
  }
}

async function consumerOf(store: Store, names: QueueNames): Promise<ConsumerConfig | undefined> {
  const { manager } = store.client
  const there = await orMissing(manager.consumers.info(names.stream, names.consumer))
  if (there !== undefined || store.settings.topology === 'check') return there?.config
  return await makeConsumer(store, names)
}

/** Also when it was deleted under us: with work-queue retention a new one begins with all that was not acked. */
export async function makeConsumer(store: Store, names: QueueNames): Promise<ConsumerConfig> {
  const { manager } = store.client
  const { ackWaitMs, maxUnacked } = store.settings
  try {
    const made = await manager.consumers.add(names.stream, {
      durable_name: names.consumer,
      ack_policy: 'explicit',
      deliver_policy: 'all',
      filter_subject: names.subject,
      ack_wait: nanos(ackWaitMs),
      max_deliver: -1,
      max_ack_pending: maxUnacked,
      max_waiting: WAITING_MAX,
    })
    return made.config
  } catch (error) {
    const theirs = await orMissing(manager.consumers.info(names.stream, names.consumer))
    if (theirs === undefined) throw error
    return theirs.config
  }
}

/** Receives of all workers that may wait at once; the server's default is 512. */
const WAITING_MAX = 8_192

type StreamSpec = Partial<StreamConfig> & { readonly name: string }

/**
 * Work-queue retention: a message leaves with its ack. The server takes schedules only with `discard: old`, which drops
 * nothing as long as the stream has no limit; without schedules the stream refuses what is too much.
 */
function queueStream({ settings }: Store, names: QueueNames): StreamSpec {
  const { replicas, duplicateWindowMs, schedules } = settings
  return {
    name: names.stream,
    subjects: schedules ? [names.subject, names.laterAll] : [names.subject],
    retention: 'workqueue',
    storage: 'file',
    num_replicas: replicas,
    duplicate_window: nanos(duplicateWindowMs),
    allow_direct: true,
    ...(schedules ? { discard: 'old', allow_msg_schedules: true } : { discard: 'new' }),
  }
}

/** Dead letters, attempts and audit, the newest of each subject; nothing in it ends before somebody removes it. */
function shelfStream({ settings }: Store, names: QueueNames): StreamSpec {
  return {
    name: names.shelf,
    subjects: [...names.shelfAll],
    retention: 'limits',
    storage: 'file',
    discard: 'old',
    max_msgs_per_subject: 1,
    num_replicas: settings.replicas,
    allow_direct: true,
  }
}

/** Undefined for what is not there. */
export async function orMissing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    const missing = ['StreamNotFoundError', 'ConsumerNotFoundError']
    if (error instanceof Error && missing.includes(error.name)) return undefined
    throw error
  }
}
