import type { ConsumerConfig, StreamConfig } from '@nats-io/jetstream'
import { OptionsError } from '../../model/errors.ts'
import type { QueueSpec } from '../../transport/transport.ts'
import { consumerDifferences, queueDifferences, shelfDifferences } from './differences.ts'
import { lanesIn, type Source, sourcesOf } from './lane.ts'
import { laneDifferences } from './lane-differences.ts'
import type { QueueNames } from './names.ts'
import { nanos } from './nanos.ts'
import { lanesFor, queueNames, type Store } from './store.ts'

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
    const compare: Compare = { spec, makes: false, lacks: topology === 'check' }
    found.push(...(await compared(store, queueNames(store, spec.name), compare)))
  }
  return found
}

async function ensureOne(store: Store, spec: QueueSpec): Promise<readonly string[]> {
  const names = queueNames(store, spec.name)
  const { topology } = store.settings
  if (topology !== 'none') {
    const makes = topology === 'create'
    const compare: Compare = { spec, makes, lacks: true }
    const found = await compared(store, names, compare)
    if (found.length > 0) return found
  }
  await store.client.manager.jetstream().publish(names.fact('owner'), spec.owner)
  return []
}

interface Compare {
  readonly spec: QueueSpec
  /** Makes what is missing. */
  readonly makes: boolean
  /** Names what is missing then. */
  readonly lacks: boolean
}

async function compared(
  store: Store,
  names: QueueNames,
  { spec, makes, lacks: isNamed }: Compare,
): Promise<readonly string[]> {
  const wanted = spec.ordered === true ? lanesFor(store, spec.name) : undefined
  const queue = await streamOf(store, queueStream(store, names, wanted ?? 0), makes)
  // Who wants no order takes what is there, and hands it on as it is.
  const lanes = wanted ?? lanesIn(names, queue?.subjects ?? [])
  const shelf = await streamOf(store, shelfStream(store, names), makes)
  const lacks = (what: string): readonly string[] => (isNamed ? [absent(names, what)] : [])
  const ofLanes = queue ? laneDifferences(names, queue, lanes) : []
  const found = [
    ...(queue
      ? queueDifferences(names, queue, store, spec.horizonMs)
      : lacks(`stream ${names.stream}`)),
    ...ofLanes,
    ...(shelf ? shelfDifferences(names, shelf, store) : lacks(`stream ${names.shelf}`)),
  ]
  // The consumers of other lanes are none of ours.
  const sources = queue && ofLanes.length === 0 ? sourcesOf(names, lanes) : []
  for (const source of sources) {
    const consumer = await consumerOf(store, source, makes)
    found.push(
      ...(consumer
        ? consumerDifferences(source, consumer, store.settings)
        : lacks(`consumer ${source.consumer}`)),
    )
  }
  // Without its stream there is no consumer either.
  return queue ? found : [...found, ...lacks(`consumer ${names.consumer}`)]
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
  source: Source,
  makes: boolean,
): Promise<ConsumerConfig | undefined> {
  const { manager } = store.client
  const there = await orMissing(manager.consumers.info(source.stream, source.consumer))
  if (there !== undefined || !makes) return there?.config
  return await makeConsumer(store, source)
}

/** Also when it was deleted under us: with work-queue retention a new one begins with all that was not acked. */
export async function makeConsumer(
  store: Store,
  { stream, consumer, subject, lane }: Source,
): Promise<ConsumerConfig> {
  const { manager } = store.client
  const { ackWaitMs, maxUnacked } = store.settings
  try {
    const made = await manager.consumers.add(stream, {
      durable_name: consumer,
      ack_policy: 'explicit',
      deliver_policy: 'all',
      filter_subject: subject,
      ack_wait: nanos(ackWaitMs),
      max_deliver: -1,
      // With one of a lane handed out, its followers wait: also behind a delay, an ack wait that ran out, and a restart.
      max_ack_pending: lane === undefined ? maxUnacked : 1,
      max_waiting: WAITING_MAX,
    })
    return made.config
  } catch (error) {
    const theirs = await orMissing(manager.consumers.info(stream, consumer))
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
function queueStream({ settings }: Store, names: QueueNames, lanes: number): StreamSpec {
  const { replicas, duplicateWindowMs, schedules } = settings
  const subjects = sourcesOf(names, lanes).map(({ subject }) => subject)
  return {
    name: names.stream,
    subjects: schedules ? [...subjects, names.laterAll] : subjects,
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
