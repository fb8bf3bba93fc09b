import type { PayloadIssue } from '../model/errors.ts'

/** An answer that is no success. Its message is for the caller: no stack traces, no addresses of ours, no secrets. */
export interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly issues?: readonly PayloadIssue[]
  /** Which message of a batch. */
  readonly index?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** Carries a refusal out of the depth of a request. */
export class RequestRefused extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.message)
    this.refusal = refusal
  }
}

export function refuse(
  status: number,
  code: string,
  message: string,
  headers?: Readonly<Record<string, string>>,
): RequestRefused {
  return new RequestRefused({ status, code, message, ...(headers ? { headers } : {}) })
}

/** The body of every answer that is no success. */
export function refusalBody(refusal: Refusal): {
  readonly error: Readonly<Record<string, unknown>>
} {
  const { code, message, issues, index } = refusal
  return {
    error: {
      code,
      message,
      ...(issues ? { issues } : {}),
      ...(index === undefined ? {} : { index }),
    },
  }
}
