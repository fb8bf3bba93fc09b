import { connect as amqpConnect, type Channel } from 'amqplib'
import { type RabbitmqOptions, rabbitmq } from 'millrace/rabbitmq'
import { systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Logger } from '../../src/model/logger.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { until } from './until.ts'

export const never: AbortSignal = new AbortController().signal

export function openRabbit(
  options: RabbitmqOptions,
  logger: Logger = silentLogger,
): Promise<Transport> {
  return rabbitmq(options).connect({
    signal: never,
    clock: systemClock(),
    random: Math.random,
    logger,
    migrate: 'auto',
  })
}

let made = 0

/** A name that no other test and no other run has. */
export function freshName(what: string): string {
  made += 1
  return `test-${process.pid}-${made} ${what}`
}

export function envelope(fields: Partial<Envelope> = {}): Envelope {
  made += 1
  return {
    id: `m-${process.pid}-${made}`,
    body: Buffer.from('{}'),
    headers: {},
    priority: 0,
    ...fields,
  }
}

export function ensure(transport: Transport, ...names: readonly string[]): Promise<void> {
  const specs = names.map((name) => ({ name, owner: 'team-test', maxDepth: undefined }))
  return transport.topology.ensure(specs, never)
}

export function subscribe(
  transport: Transport,
  queue: string,
  maxInFlight: number = 100,
): Promise<Subscription> {
  return transport.subscribe(queue, { group: 'test', leaseMs: 60_000, maxInFlight })
}

export async function take(from: Subscription, count: number): Promise<readonly Delivery[]> {
  const all: Delivery[] = []
  await until(`${count} deliveries`, async () => {
    all.push(...(await from.receive({ max: count - all.length, waitMs: 100, signal: never })))
    return all.length >= count
  })
  return all
}

/** The user's own client, as other programs use it. */
export async function withChannel<T>(
  url: string,
  use: (channel: Channel) => Promise<T>,
): Promise<T> {
  const connection = await amqpConnect(url)
  const channel = await connection.createChannel()
  channel.on('error', () => {})
  try {
    return await use(channel)
  } finally {
    await connection.close()
  }
}

/** The queues of the broker that one of ours with lanes is made of. */
export function laneQueues(base: string, lanes: number): readonly string[] {
  const all = Array.from({ length: lanes }, (_, number) => `${base}.lane.${number}`)
  return [...all, `${base}.lanes`]
}

export async function deleteLanes(channel: Channel, base: string, lanes: number): Promise<void> {
  for (const queue of laneQueues(base, lanes)) await channel.deleteQueue(queue)
}
