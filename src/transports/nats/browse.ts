import type { ConsumerInfo } from '@nats-io/jetstream'
import { pause } from '../../model/clock.ts'
import { read } from '../../model/probe.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import type { Browse, Gauge } from '../../transport/transport.ts'
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
  const { manager } = store.client
  const [consumer, stream, dead] = await Promise.all([
    consumerInfo(store, names),
    manager.streams.info(names.stream),
    deadCount(store, names),
  ])
  const depth = consumer.num_pending
  const inFlight = consumer.num_ack_pending
  return {
    depth,
    inFlight,
    scheduled: Math.max(0, stream.state.messages - depth - inFlight),
    dead,
    ageMs: depth === 0 ? 0 : await oldestMs(store, names, consumer),
    paused: consumer.paused === true,
  }
}

async function oldestMs(
  store: Store,
  names: QueueNames,
  { delivered }: ConsumerInfo,
): Promise<number | undefined> {
  const { api } = store.client
  const request = JSON.stringify({ seq: delivered.stream_seq + 1, next_by_subj: names.subject })
  const { timeoutMs } = store
  const msg = await store.request(`${api}.STREAM.MSG.GET.${names.stream}`, request, {
    timeout: timeoutMs,
  })
  const storedAt = Date.parse(String(read(read(parsed(msg.string()), 'message'), 'time')))
  // Taken in between.
  if (Number.isNaN(storedAt)) return undefined
  return Math.max(0, Math.round((await store.serverClock.now(names)) - storedAt))
}

async function setPaused(store: Store, queue: string, paused: boolean): Promise<void> {
  const names = needOpen(store, queue)
  const { consumers } = store.client.manager
  await consumerInfo(store, names)
  if (paused) await consumers.pause(names.stream, names.consumer, FOREVER)
  else await consumers.resume(names.stream, names.consumer)
  // In a cluster the consumer's leader hears of it a moment later.
  const endAt = store.clock.now() + store.timeoutMs
  while (((await consumerInfo(store, names)).paused === true) !== paused) {
    if (store.clock.now() >= endAt) throw new PullError(503, 'not paused or resumed in time')
    await pause(store.clock, LOOK_AGAIN_MS, store.closing)
    needOpen(store, queue)
  }
}

const LOOK_AGAIN_MS = 20

/** A pause needs an end; this one is out of the way. */
const FOREVER = new Date('2200-01-01T00:00:00Z')

async function consumerInfo(store: Store, names: QueueNames): Promise<ConsumerInfo> {
  const { consumers } = store.client.manager
  const info = await orMissing(consumers.info(names.stream, names.consumer))
  if (info === undefined) throw unknownQueueError(names.queue)
  return info
}
