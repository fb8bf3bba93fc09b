import type { Fault } from '../../model/fault.ts'
import { readString } from '../../model/probe.ts'

/** SQLSTATE lock_not_available. */
const LOCKED = '55P03'

export function isLocked(error: unknown): boolean {
  return readString(error, 'code') === LOCKED
}

/** It waited as long as it may for what somebody's transaction holds; nothing happened. */
export function held(cause: unknown): { readonly ok: false; readonly fault: Fault } {
  return { ok: false, fault: { code: 'held', retryable: true, outcome: 'notApplied', cause } }
}
