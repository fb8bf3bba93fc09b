import { hasCode } from '../model/errors.ts'

/**
 * Whether a store threw this because of what it was asked (see `Store`), and not because it is away: asked again it would say the same for
 * ever, so nothing may wait for it.
 */
export function isRefusedCall(error: unknown): boolean {
  return hasCode(error, 'MILLRACE_INVALID_OPTIONS')
}
