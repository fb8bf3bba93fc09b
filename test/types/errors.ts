// Compiled, never run: each expected error fails the build once the mistake compiles.
import { type ErrorCode, hasCode, isMillraceError, type MillraceError } from 'millrace'
import { type Equal, same } from './equal.ts'

declare const error: unknown

export function narrowed(): unknown {
  if (hasCode(error, 'MILLRACE_QUEUE_FULL')) {
    same<Equal<typeof error.code, 'MILLRACE_QUEUE_FULL'>>()
    same<Equal<typeof error.retryable, boolean>>()
    return error.fields.queue
  }
  // @ts-expect-error it may be anything else
  return error.fields
}

export function known(): ErrorCode | undefined {
  return isMillraceError(error) ? error.code : undefined
}

export function ofAnyCode(code: ErrorCode): MillraceError | undefined {
  return hasCode(error, code) ? error : undefined
}

export function wrong(): boolean {
  // @ts-expect-error no such code
  return hasCode(error, 'MILLRACE_QUEUE_FUL')
}
