import type { Sent, Settled } from '../model/delivery.ts'
import type { Fault, FaultCode } from '../model/fault.ts'

/** The message is new, and now the backend's. */
export function stored(id: string): Sent {
  return { ok: true, id, duplicate: false }
}

/** Nothing was stored, because the message of this id stands for it. */
export function duplicateOf(id: string): Sent {
  return { ok: true, id, duplicate: true }
}

/** Nothing was stored, and without a change by somebody nothing will be, unless `more` says otherwise. */
export function refused(code: FaultCode, more: Partial<Fault> = {}): Sent {
  return { ok: false, fault: { code, retryable: false, outcome: 'notApplied', ...more } }
}

/** The delivery is no longer ours; whatever we wanted to do with it did not happen. */
export const lost: Settled = {
  ok: false,
  fault: { code: 'lost', retryable: false, outcome: 'notApplied' },
}
