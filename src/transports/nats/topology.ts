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

/** As `ensure`, but makes nothing; what is missing is no difference where it would be made. */
export async function differences(
  store: Store,
  queues: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { topology } = store.settings
  if (topology === 'none') return []
  const found: string[] = []
  for (const spec of new Map(queues.map((queue) => [queue.name, queue])).values()) {
    signal.throwIfAborted()
    const compare: Compare = {
      horizonMs: spec.horizonMs,
      makes: false,
      lacks: topology === 'check',
    }
    found.push(...(await compared(store, queueNames(store, spec.name), compare)))
  }
  return found
}

async function ensureOne(store: Store, spec: QueueSpec): Promise<readonly string[]> {
  const names = queueNames(store, spec.name)
  const { topology } = store.settings
  if (topology !== 'none') {
    const makes = topology === 'create'
    const compare: Compare = { horizonMs: spec.horizonMs, makes, lacks: true }
    const found = await compared(store, names, compare)
    if (found.length > 0) return found
  }
  await store.client.manager.jetstream().publish(names.fact('owner'), spec.owner)
  return []
}

interface Compare {
  readonly horizonMs: number | undefined
  /** Makes what is missing. */
  readonly makes: boolean
  /** Names what is missing then. */
  readonly lacks: boolean
}

async function compared(
  store: Store,
  names: QueueNames,
  { horizonMs, makes, lacks: isNamed }: Compare,
): Promise<readonly string[]> {
  const queue = await streamOf(store, queueStream(store, names), makes)
  const shelf = await streamOf(store, shelfStream(store, names), makes)
  const lacks = (what: string): readonly string[] => (isNamed ? [absent(names, what)] : [])
  const consumer = queue && (await consumerOf(store, names, makes))
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
  { client: { manager } }: Store,
  wanted: StreamSpec,
  makes: boolean,
): Promise<StreamConfig | undefined> {
  const there = await orMissing(manager.streams.info(wanted.name))
  if (there !== undefined || !makes) return there?.config
  try {
    return (await manager.streams.add(wanted)).config
  } catch (error) {
    // Somebody else was faster, with other settings; what counts is what is there now.
    const theirs = await orMissing(manager.streams.info(wanted.name))
    if (theirs === undefined) throw error
    return theirs.config
  }
}

async function consumerOf(
  store: Store,
  names: QueueNames,
  makes: boolean,
): Promise<ConsumerConfig | undefined> {
  const { manager } = store.client
  const there = await orMissing(manager.consumers.info(names.stream, names.consumer))
  if (there !== undefined || !makes) return there?.config
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
