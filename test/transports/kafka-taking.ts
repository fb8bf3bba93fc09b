import assert from 'node:assert/strict'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Subscription } from '../../src/transport/transport.ts'
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
