import type { ConsumerInfo } from '@nats-io/jetstream'
import { pause } from '../../model/clock.ts'
import { read } from '../../model/probe.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import type { Browse, Gauge } from '../../transport/transport.ts'
import { lanesIn, type Source, sourcesOf } from './lane.ts'
import type { QueueNames } from './names.ts'
import { PullError } from './pull.ts'
import { deadCount } from './scan.ts'
import { needOpen, type Store } from './store.ts'
import { orMissing } from './topology.ts'
import { parsed } from './wire.ts'

export function browse(store: Store): Browse {
  return {
    gauge: (queue) => gauge(store, queue),
    ...(store.server.pauses
      ? { setPaused: (queue: string, paused: boolean) => setPaused(store, queue, paused) }
      : {}),
  }
}

/**
 * In flight is what the server waits for an ack of: what workers hold, and what was released and has not come back. What is
 * in the stream beside that and beside the ready ones waits for its schedule.
 */
async function gauge(store: Store, queue: string): Promise<Gauge> {
  const names = needOpen(store, queue)
  const [{ sources, messages }, dead] = await Promise.all([
    present(store, names),
    deadCount(store, names),
  ])
  const consumers = await Promise.all(sources.map((source) => consumerInfo(store, source)))
  const depth = total(consumers.map(({ num_pending }) => num_pending))
  const inFlight = total(consumers.map(({ num_ack_pending }) => num_ack_pending))
  return {
    depth,
    inFlight,
    scheduled: Math.max(0, messages - depth - inFlight),
    dead,
    ageMs: depth === 0 ? 0 : await oldestMs(store, names, sources, consumers),
    paused: consumers.some(({ paused }) => paused === true),
  }
}

/** What is there of a queue: its consumers, and how many messages its stream has. */
interface Present {
  readonly sources: readonly Source[]
  readonly messages: number
}

async function present({ client }: Store, names: QueueNames): Promise<Present> {
  const stream = await orMissing(client.manager.streams.info(names.stream))
  if (stream === undefined) throw unknownQueueError(names.queue)
  const { config, state } = stream
  return { sources: sourcesOf(names, lanesIn(names, config.subjects)), messages: state.messages }
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

/** Of all consumers that have something ready. */
async function oldestMs(
  store: Store,
  names: QueueNames,
  sources: readonly Source[],
  consumers: readonly ConsumerInfo[],
): Promise<number | undefined> {
  const found = await Promise.all(
    consumers.map(({ num_pending, delivered }, i) => {
      const source = sources[i]
      if (source === undefined || num_pending === 0) return undefined
      return storedAt(store, source, delivered.stream_seq + 1)
    }),
  )
  const moments = found.filter((moment) => moment !== undefined)
  if (moments.length === 0) return undefined
  return Math.max(0, Math.round((await store.serverClock.now(names)) - Math.min(...moments)))
}

/** Undefined when it was taken in between. */
async function storedAt(
  { client, request, timeoutMs }: Store,
  { stream, subject }: Source,
  seq: number,
): Promise<number | undefined> {
  const asked = JSON.stringify({ seq, next_by_subj: subject })
  const msg = await request(`${client.api}.STREAM.MSG.GET.${stream}`, asked, { timeout: timeoutMs })
  const at = Date.parse(String(read(read(parsed(msg.string()), 'message'), 'time')))
  return Number.isNaN(at) ? undefined : at
}

async function setPaused(store: Store, queue: string, paused: boolean): Promise<void> {
  const names = needOpen(store, queue)
  const { sources } = await present(store, names)
  await Promise.all(sources.map((source) => setConsumerPaused(store, source, paused)))
}

async function setConsumerPaused(store: Store, source: Source, paused: boolean): Promise<void> {
  const { consumers } = store.client.manager
  await consumerInfo(store, source)
  if (paused) await consumers.pause(source.stream, source.consumer, FOREVER)
  else await consumers.resume(source.stream, source.consumer)
  // In a cluster the consumer's leader hears of it a moment later.
  const endAt = store.clock.now() + store.timeoutMs
  while (((await consumerInfo(store, source)).paused === true) !== paused) {
    if (store.clock.now() >= endAt) throw new PullError(503, 'not paused or resumed in time')
    await pause(store.clock, LOOK_AGAIN_MS, store.closing)
    needOpen(store, source.queue)
  }
}

const LOOK_AGAIN_MS = 20

/** A pause needs an end; this one is out of the way. */
const FOREVER = new Date('2200-01-01T00:00:00Z')

async function consumerInfo({ client }: Store, source: Source): Promise<ConsumerInfo> {
  const { consumers } = client.manager
  const info = await orMissing(consumers.info(source.stream, source.consumer))
  if (info === undefined) throw unknownQueueError(source.queue)
  return info
}
