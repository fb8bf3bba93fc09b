import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect as dial, type NatsConnection } from '@nats-io/transport-node'
import { type NatsSettings, nats } from 'millrace/nats'
import type { Clock } from '../../src/model/clock.ts'
import type { Delivery, Settlement } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { connecting, freshPrefix, removeStreams } from './nats-harness.ts'
import { until } from './until.ts'

export const { signal }: AbortController = new AbortController()

/** One transport on streams of its own, and a plain client beside it. */
export interface NatsBench {
  readonly transport: Transport
  readonly prefix: string
  /** What another program would use. */
  readonly raw: NatsConnection
  readonly manager: JetStreamManager
  another(
    settings?: NatsSettings & { readonly servers?: string },
    clock?: Clock,
  ): Promise<Transport>
  subscribe(transport?: Transport, leaseMs?: number): Promise<Subscription>
  dispose(): Promise<void>
}

/** With the queue `q`. */
export async function openNats(
  servers: string | string[],
  settings: NatsSettings = {},
): Promise<NatsBench> {
  const prefix = freshPrefix()
  const opened: Transport[] = []
  const another: NatsBench['another'] = async (more = {}, clock) => {
    const options = { servers, prefix, ackWaitMs: 1_000, timeoutMs: 3_000, ...settings, ...more }
    const transport = await connecting(nats(options), clock)
    opened.push(transport)
    return transport
  }
  const raw = await dial({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 100 })
  const transport = await another()
  // A cluster that a node came back to a moment ago may have no place for a stream yet.
  let refusal: unknown
  const isPlaced = (): Promise<boolean> =>
    ensureQ(transport).then(
      () => true,
      (error: unknown) => {
        refusal = error
        return false
      },
    )
  await until('a place for the queue', isPlaced).catch(async () => {
    await Promise.all([transport.close(), raw.close()])
    throw refusal
  })
  return {
    transport,
    prefix,
    raw,
    manager: await jetstreamManager(raw),
    another,
    subscribe: (from = transport, leaseMs = 60_000) =>
      from.subscribe('q', { group: 'g', leaseMs, maxInFlight: 100 }),
    async dispose() {
      await Promise.all(opened.map((one) => one.close()))
      await raw.close()
      await removeStreams(servers, prefix)
    },
  }
}

export function ensureQ(transport: Transport): Promise<void> {
  return transport.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], signal)
}

export function envelope(id: string, fields: Partial<Envelope> = {}): Envelope {
  return {
    id,
    body: new TextEncoder().encode(`{"n":"${id}"}`),
    headers: {},
    priority: 0,
    ...fields,
  }
}

export async function take(from: Subscription, count = 1, waitMs = 5_000): Promise<Delivery[]> {
  const all: Delivery[] = []
  const endAt = Date.now() + waitMs
  while (all.length < count && Date.now() < endAt) {
    all.push(...(await from.receive({ max: count - all.length, waitMs: 500, signal })))
  }
  return all
}

export async function one(from: Subscription): Promise<Delivery> {
  const [delivery] = await take(from)
  if (delivery === undefined) throw new Error('expected a delivery, got none')
  return delivery
}

export function ack(delivery: Delivery): Settlement {
  return { as: 'acked', delivery }
}

export function released(delivery: Delivery, delayMs = 0): Settlement {
  return { as: 'released', delivery, delayMs, counted: false }
}
