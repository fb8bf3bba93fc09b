import type { Sent } from '../model/delivery.ts'

/**
 * What an atomic batch answers when one of its items cannot be stored: that item's fault for every other one too,
 * because none is kept. Undefined when all can be stored.
 */
export function allRefused(outcomes: readonly Sent[]): readonly Sent[] | undefined {
  const failed = outcomes.find((outcome) => !outcome.ok)
  if (failed === undefined || failed.ok) return undefined
  const { code, retryable } = failed.fault
  const kept: Sent = { ok: false, fault: { code, retryable, outcome: 'notApplied' } }
  return outcomes.map((outcome) => (outcome.ok ? kept : outcome))
}

/** Thrown inside a transaction to roll an atomic batch back; carries out what the batch answers. */
export class Undone extends Error {
  readonly outcomes: readonly Sent[]
  constructor(outcomes: readonly Sent[]) {
    super('the batch was rolled back')
    this.outcomes = outcomes
  }
}
