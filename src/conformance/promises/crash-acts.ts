import assert from 'node:assert/strict'
import type { Delivery } from '../../model/delivery.ts'
import type { Subscription } from '../../transport/transport.ts'
import type { Scope } from '../scope.ts'

type Take = (from: Subscription, count: number) => Promise<unknown>

/** A worker takes `count` messages and is never heard of again. */
export async function crashWith(
  scope: Scope,
  queue: string,
  count: number,
  take: Take = scope.take,
): Promise<void> {
  const doomed = await scope.connect()
  await take(await scope.subscribeShortly(doomed, queue), count)
  await scope.vanish(doomed)
  await scope.leaseRunsOut()
}

/** Asked for more: whoever could bring several must not have them in hand. */
export async function alone(scope: Scope, subscription: Subscription): Promise<Delivery> {
  let batch: readonly Delivery[] = []
  await scope.until('a suspect', async () => {
    batch = await scope.receive(subscription, 8)
    return batch.length > 0
  })
  const [suspect] = batch
  assert.ok(suspect && batch.length === 1)
  return suspect
}
