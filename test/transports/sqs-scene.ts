import type { TestContext } from 'node:test'
import type { SQSClient } from '@aws-sdk/client-sqs'
import { type SqsOptions, sqs } from 'millrace/sqs'
import type { Delivery, Settlement } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { type WatchedClient, watchedClient } from './sqs-client.ts'
import { freshName, open } from './sqs-harness.ts'
import type { SqsServer } from './sqs-servers.ts'
import { until } from './until.ts'

export const { signal } = new AbortController()
let made = 0

/** A transport over a client that can be interfered with, and one queue of its own. */
export interface Scene extends Pick<WatchedClient, 'calls' | 'interfere'> {
  readonly transport: Transport
  readonly queue: string
  readonly client: SQSClient
  /** The queue's URL. */
  readonly url: string
  subscribe(leaseMs?: number): Promise<Subscription>
}

export async function scene(
  t: TestContext,
  server: SqsServer,
  options: Omit<SqsOptions, 'client'> = {},
): Promise<Scene> {
  const { client, calls, interfere } = watchedClient(server)
  const transport = await open(sqs({ ...options, client }))
  t.after(async () => {
    interfere(undefined)
    await transport.close()
    client.destroy()
  })
  const queue = freshName()
  await transport.topology.ensure([{ name: queue, owner: 'team', maxDepth: undefined }], signal)
  const made = calls.find(({ action }) => action === 'GetQueueAttributes')
  return {
    transport,
    queue,
    client,
    calls,
    interfere,
    url: String(made?.input.QueueUrl),
    subscribe: (leaseMs = 30_000) =>
      transport.subscribe(queue, { group: 'g', leaseMs, maxInFlight: 100 }),
  }
}

export function message(fields: Partial<Envelope> = {}): Envelope {
  made += 1
  const id = `m-${made}`
  return { id, body: text(`{"n":${made}}`), headers: {}, priority: 0, ...fields }
}

export function text(value: string): Uint8Array {
  return new TextEncoder().encode(value)
}

export function receive(from: Subscription, max = 10): Promise<readonly Delivery[]> {
  return from.receive({ max, waitMs: 0, signal })
}

export async function take(from: Subscription, count: number): Promise<readonly Delivery[]> {
  const all: Delivery[] = []
  await until(`${count} deliveries`, async () => {
    all.push(...(await receive(from, count - all.length)))
    return all.length >= count
  })
  return all
}

export async function one(from: Subscription): Promise<Delivery> {
  const [delivery] = await take(from, 1)
  if (delivery === undefined) throw new Error('no delivery')
  return delivery
}

export function acked(delivery: Delivery): Settlement {
  return { as: 'acked', delivery }
}

export function released(delivery: Delivery, delayMs = 0): Settlement {
  return { as: 'released', delivery, delayMs, counted: false }
}

export function idsOf(deliveries: readonly Delivery[]): readonly string[] {
  return deliveries.map(({ envelope }) => envelope.id)
}
