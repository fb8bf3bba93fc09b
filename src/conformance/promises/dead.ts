import type { Envelope } from '../../model/envelope.ts'
import { assertAllOk, type DeathAct, died } from '../acts.ts'
import type { Scope } from '../scope.ts'

/** Sends a message and lets it die. */
export async function kill(
  scope: Scope,
  queue: string,
  envelope: Envelope,
  act: DeathAct = {},
): Promise<void> {
  await scope.send(scope.near, queue, envelope)
  const subscription = await scope.subscribe(scope.near, queue)
  assertAllOk(await scope.settle(subscription, died(await scope.one(subscription), act)))
  // Left open, it would be pushed what the test sends next.
  await subscription.close()
}
