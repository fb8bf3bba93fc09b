import { resetEverywhere } from '../flow/consumer-switch.ts'
import type { Measure } from '../flow/measure.ts'
import type { Meter } from '../flow/meter.ts'
import type { QueueFlow } from '../flow/queue-flow.ts'
import type { QueueSight } from '../flow/slot-control.ts'
import { backendError } from '../model/backend-error.ts'
import type { Store } from '../store/store.ts'
import type { Transport } from '../transport/transport.ts'

/** What the number of handlers follows. A backend that cannot be browsed says nothing of it. */
export async function sightOf(transport: Transport, queue: string): Promise<QueueSight> {
  const gauge = await transport.browse?.gauge(queue)
  return { ageMs: gauge?.ageMs, depth: gauge?.depth }
}

export async function measureOf(
  meter: Meter,
  store: Store | undefined,
): Promise<{ readonly fleet: Measure | undefined; readonly own: Measure | undefined }> {
  try {
    return { fleet: await meter.fleet(), own: meter.own() }
  } catch (cause) {
    if (store === undefined) throw cause
    throw backendError({ ...store.diagnose(cause), cause }, { where: 'the store', reads: true })
  }
}

/** Lets consumers that their kill switch stopped go on: here at once, elsewhere through the store. False when none is known. */
export async function resumedConsumers(
  queue: string,
  flow: QueueFlow | undefined,
  store: Store | undefined,
): Promise<boolean> {
  const here = flow?.reset() ?? false
  if (store === undefined) return here
  try {
    await resetEverywhere(store, queue)
    return true
  } catch (cause) {
    throw backendError({ ...store.diagnose(cause), cause }, { where: 'the store', reads: false })
  }
}
