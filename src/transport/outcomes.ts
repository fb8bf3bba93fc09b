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

/** The answer to the next item of a batch. Of one that has none nobody knows what became. */
export function nextOf(answers: Iterator<Sent>): Sent {
  const { done, value } = answers.next()
  return done ? refused('unknown', { outcome: 'unknown' }) : value
}

/** Settled, or no longer ours: nothing of it is in hand any more. */
export function isGone(outcome: Settled | undefined): boolean {
  return outcome !== undefined && (outcome.ok || outcome.fault.code === 'lost')
}

/** It was not tried, because this happened to one before it in its order. */
export function behind(before: Sent): Sent {
  if (before.ok) return before
  return { ok: false, fault: { ...before.fault, retryable: true, outcome: 'notApplied' } }
}

/** The delivery is no longer ours; whatever we wanted to do with it did not happen. */
export const lost: Settled = {
  ok: false,
  fault: { code: 'lost', retryable: false, outcome: 'notApplied' },
}

/** An error of a call as the outcome of each item that it was about. */
export function asFaults(
  diagnose: (error: unknown) => Fault,
  count: number,
): (cause: unknown) => readonly { readonly ok: false; readonly fault: Fault }[] {
  return (cause) => {
    const fault = { ...diagnose(cause), cause }
    return Array.from({ length: count }, () => ({ ok: false, fault }))
  }
}
