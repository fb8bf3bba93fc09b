import type { Delivery } from '../../src/model/delivery.ts'
import { freshHistory } from '../../src/model/history.ts'

const { signal } = new AbortController()

/** A delivery that nothing has happened to, for parts of the runtime that need no backend. */
export function handedOut(id: string): Delivery {
  return {
    envelope: { id, body: new Uint8Array(), headers: {}, priority: 0 },
    ...{ sentAt: 0, deliveries: 1, history: freshHistory, alone: false, fence: undefined },
    ...{ lane: undefined, position: undefined, receipt: undefined },
    claim: { expiresAt: undefined, ending: signal, lost: signal },
  }
}
