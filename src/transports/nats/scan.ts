import type { ConsumerInfo } from '@nats-io/jetstream'
import type { Msg } from '@nats-io/transport-node'
import { pause } from '../../model/clock.ts'
import { handingOf } from './held.ts'
import type { Stored } from './letter.ts'
import type { QueueNames } from './names.ts'
import { nanos } from './nanos.ts'
import { isPassing, PullError } from './pull.ts'
import type { Store } from './store.ts'

export interface ScanOptions {
  readonly stream: string
  readonly subject: string
  /** The first sequence to look at. */
  readonly from: number
  /** The last one. */
  readonly to: number
  readonly headersOnly: boolean
}

/** Read at once; the stream is read in parts of this size. */
const PART = 500
const IDLE_MS = 30_000

/** Reads a stream without consuming it: a consumer of its own that acks nothing and ends with the reading. */
export async function* scan(store: Store, options: ScanOptions): AsyncGenerator<readonly Stored[]> {
  const { stream, from, to } = options
  if (to < from) return
  const { manager } = store.client
  const consumer = await openScan(store, options)
  try {
    let left = consumer.num_pending
    while (left > 0) {
      const part = await fetchHeard(store, stream, consumer.name, Math.min(PART, left))
      if (part.length === 0) return
      left -= part.length
      const wanted = part.filter(({ seq }) => seq <= to)
      if (wanted.length > 0) yield wanted
      if (wanted.length < part.length) return
    }
  } finally {
    await manager.consumers.delete(stream, consumer.name).catch(() => {})
  }
}

function openScan({ client }: Store, options: Omit<ScanOptions, 'to'>): Promise<ConsumerInfo> {
  const { stream, subject, from, headersOnly } = options
  return client.manager.consumers.add(stream, {
    ack_policy: 'none',
    deliver_policy: 'by_start_sequence',
    opt_start_seq: from,
    filter_subject: subject,
    headers_only: headersOnly,
    inactive_threshold: nanos(IDLE_MS),
    mem_storage: true,
    num_replicas: 1,
  })
}

/** A consumer knows at its making how much is in front of it. */
export async function deadCount(store: Store, names: QueueNames): Promise<number> {
  const options = { stream: names.shelf, subject: names.deadAll, from: 1, headersOnly: true }
  const { name, num_pending } = await openScan(store, options)
  await store.client.manager.consumers.delete(names.shelf, name)
  return num_pending
}

/** In a cluster a consumer that was just made may not listen yet. */
async function fetchHeard(
  store: Store,
  stream: string,
  consumer: string,
  batch: number,
): Promise<readonly Stored[]> {
  const endAt = store.clock.now() + store.timeoutMs
  for (;;) {
    try {
      return await fetchPart(store, stream, consumer, batch)
    } catch (error) {
      if (!isPassing(error) || store.clock.now() >= endAt || store.closing.aborted) throw error
      await pause(store.clock, LOOK_AGAIN_MS, store.closing)
    }
  }
}

const LOOK_AGAIN_MS = 20

async function fetchPart(
  store: Store,
  stream: string,
  consumer: string,
  batch: number,
): Promise<readonly Stored[]> {
  const { nc, inbox, api } = store.client
  const reply = inbox()
  const found: Stored[] = []
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const subscription = nc.subscribe(reply, {
    callback(error, msg) {
      const code = msg?.headers?.code ?? 0
      if (error !== null) reject(error)
      else if (code === 404 || code === 408) resolve()
      else if (code > 0) reject(new PullError(code, msg.headers?.description ?? ''))
      else if (found.push(storedOf(msg)) >= batch) resolve()
    },
  })
  const cancel = store.clock.after(store.timeoutMs, () => {
    reject(new PullError(503, 'nothing in time'))
  })
  try {
    const request = JSON.stringify({ batch, no_wait: true })
    nc.publish(`${api}.CONSUMER.MSG.NEXT.${stream}.${consumer}`, request, { reply })
    await promise
    return found
  } finally {
    cancel()
    subscription.unsubscribe()
  }
}

function storedOf(msg: Msg): Stored {
  const handing = handingOf(msg.reply)
  return {
    seq: handing?.seq ?? 0,
    headers: msg.headers,
    data: msg.data,
    deadAt: handing?.storedAt ?? 0,
  }
}
