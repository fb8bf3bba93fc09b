import type { Measure } from '../flow/measure.ts'
import type { Meter } from '../flow/meter.ts'
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
