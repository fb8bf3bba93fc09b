import assert from 'node:assert/strict'
import type { Delivery, Sent, Settled, Settlement } from '../model/delivery.ts'
import type { FaultCode } from '../model/fault.ts'
import type { AttemptRecord, ErrorClass } from '../model/history.ts'
import type { Traits } from '../transport/traits.ts'
import type { Browse, Gauge } from '../transport/transport.ts'
import type { Subject } from './promise.ts'

/** The acts of a worker and what they are answered, in the words of the tests. */

export function acked(delivery: Delivery): Settlement {
  return { as: 'acked', delivery }
}

export interface ReleaseAct {
  readonly counted: boolean
  readonly delayMs?: number
  readonly attempt?: AttemptRecord
}

export function released(delivery: Delivery, act: ReleaseAct): Settlement {
  return { as: 'released', delivery, delayMs: 0, ...act }
}

export interface DeathAct {
  readonly reason?: string
  readonly errorClass?: ErrorClass
  readonly attempt?: AttemptRecord
}

export function died(delivery: Delivery, act: DeathAct = {}): Settlement {
  const errorClass = act.errorClass ?? 'permanent'
  return {
    as: 'dead',
    delivery,
    reason: 'the receiver said no',
    errorClass,
    attempt: failedAttempt({ errorClass }),
    ...act,
  }
}

export function failedAttempt(fields: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    at: 1_767_225_600_123,
    errorClass: 'transient',
    code: 'HTTP_503',
    message: 'the receiver answered 503 „später“',
    ...fields,
  }
}

export function assertAllOk(outcomes: readonly Settled[]): void {
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.fault.code)),
    outcomes.map(() => 'ok'),
  )
}

export function assertLost(outcome: Settled | undefined): void {
  assert.equal(outcome && codeOf(outcome), 'lost')
}

/** `ok`, `duplicate` or the fault's code: what a table of outcomes needs. */
export function codeOf(outcome: Sent | Settled): 'ok' | 'duplicate' | FaultCode {
  if (!outcome.ok) return outcome.fault.code
  return 'duplicate' in outcome && outcome.duplicate ? 'duplicate' : 'ok'
}

export function idsOf(deliveries: readonly Delivery[]): readonly string[] {
  return deliveries.map((delivery) => delivery.envelope.id)
}

const HOUR_MS = 3_600_000

/** A delay that outlasts any test, as long as the transport takes one: an hour at most. */
export function longDelayMs({ delay }: Traits): number {
  return delay === 'none' ? 0 : Math.min(HOUR_MS, delay.maxMs)
}

/** The member that `when` looked for; a transport that has it on one connection has it on all. */
export function present<T>(member: T | undefined): T {
  if (member === undefined) throw new Error('a connection lacks a member that another one has')
  return member
}

/** For `when`: these acts of `browse` are all there. */
export function canBrowse(...acts: readonly (keyof Browse)[]): (subject: Subject) => boolean {
  return ({ transport }) => acts.every((act) => transport.browse?.[act] !== undefined)
}

/** Asserts each field that the backend can say; one that it cannot say is not asked. */
export function assertGauge(gauge: Gauge, expected: Partial<Gauge>): void {
  const said = new Map(Object.entries(gauge))
  for (const [field, value] of Object.entries(expected)) {
    const got = said.get(field)
    if (got !== undefined) assert.equal(got, value, `${field} is ${got}, not ${value}`)
  }
}
