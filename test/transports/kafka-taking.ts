import assert from 'node:assert/strict'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { until } from './until.ts'

const { signal } = new AbortController()

/** @param limitMs a holder that vanished is missed at the end of its session, and a group takes its time to share out anew */
export async function take(
  from: Subscription,
  count: number,
  limitMs = 30_000,
): Promise<readonly Delivery[]> {
  const taken: Delivery[] = []
  await until(
    `${count} deliveries`,
    async () => {
      taken.push(...(await from.receive({ max: count - taken.length, waitMs: 200, signal })))
      return taken.length === count
    },
    limitMs,
  )
  return taken
}

export async function ack(from: Subscription, batch: readonly Delivery[]): Promise<void> {
  const outcomes = await from.settle(batch.map((delivery) => ({ as: 'acked', delivery })))
  assert.ok(outcomes.every(({ ok }) => ok))
}

export function ensure(transport: Transport, name: string): Promise<void> {
  return transport.topology.ensure([{ name, owner: 'o', maxDepth: undefined }], signal)
}

export function subscribe(transport: Transport, queue: string): Promise<Subscription> {
  return transport.subscribe(queue, { group: 'g', leaseMs: 1_000, maxInFlight: 10 })
}

/** Each with its id as its ordering key. */
export async function send(
  transport: Transport,
  queue: string,
  ids: readonly string[],
): Promise<void> {
  const envelopes = ids.map((id) => ({
    id,
    body: Buffer.from('x'),
    headers: {},
    priority: 0,
    orderingKey: id,
  }))
  const outcomes = await transport.send(queue, envelopes, { signal })
  assert.deepEqual(
    outcomes.filter(({ ok }) => !ok),
    [],
  )
}
