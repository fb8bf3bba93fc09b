import { MillraceError } from '../model/errors.ts'
import type { RunEnd } from './run.ts'

type Names = Readonly<Record<'queue' | 'messageId', string> & { attempt: number }>

/** Why the signal of a handler fired: its time was over. */
export class HandlerTimeout extends MillraceError {
  constructor(names: Names, timeoutMs: number) {
    super(
      'MILLRACE_HANDLER_TIMEOUT',
      `queue "${names.queue}": the handler of message ${names.messageId} took longer than handlerTimeoutMs (${timeoutMs} ms)`,
      { retryable: true, fields: names },
    )
  }
}

/** The handler never began: its time was over before the schema had answered. */
export function judgementTimeout(names: Names, timeoutMs: number): MillraceError {
  return new MillraceError(
    'MILLRACE_HANDLER_TIMEOUT',
    `queue "${names.queue}": the schema did not answer about message ${names.messageId} within handlerTimeoutMs (${timeoutMs} ms)`,
    { retryable: true, fields: names },
  )
}

/** Why the signal of a handler fired: its message is no longer its own. */
export class LeaseLost extends MillraceError {
  constructor(names: Names) {
    super(
      'MILLRACE_LEASE_LOST',
      `queue "${names.queue}": message ${names.messageId} is no longer ours (its lease ended, or it was cancelled); stop, it is handled elsewhere`,
      { fields: names },
    )
  }
}

/** Why the signal of a handler fired: so many may run side by side, and it is none of them any more. */
export class SlotLost extends MillraceError {
  constructor(names: Names) {
    super(
      'MILLRACE_SLOT_LOST',
      `queue "${names.queue}": message ${names.messageId} has lost its slot (concurrencyLimit), as it was not renewed in time; stop, another may run in its place; the message is given back`,
      { retryable: true, fields: names },
    )
  }
}

/** After its signal fired a handler may still have succeeded; a failure is blamed on what fired the signal. */
export function endOfAborted(outcome: RunEnd, reason: unknown): RunEnd {
  if (reason instanceof LeaseLost) return { kind: 'lost' }
  if (outcome.kind === 'failed' && reason instanceof SlotLost) return { kind: 'interrupted' }
  if (outcome.kind !== 'failed' || !(reason instanceof HandlerTimeout)) return outcome
  return { kind: 'failed', error: reason }
}

/** Why a run may not commit any more. */
export function forbiddenError(reason: unknown, names: Names): MillraceError {
  if (reason instanceof MillraceError) return reason
  return new MillraceError(
    'MILLRACE_CONTEXT_CLOSED',
    `queue "${names.queue}": the attempt of message ${names.messageId} has ended`,
    { fields: names },
  )
}
