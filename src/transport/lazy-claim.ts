import type { Claim } from '../model/delivery.ts'
import { lazyAbort } from '../model/lazy-abort.ts'

/** The claim of a lease, and how its store says that it is lost. */
export interface LazyClaim {
  readonly claim: Claim
  lose(): void
}

/**
 * A claim whose signals cost nothing until somebody looks at them: an AbortController costs more than a message's
 * share of a whole receive, and most are never looked at.
 * @param expiresAt epoch ms by the caller's clock, a hint
 */
export function lazyClaim(expiresAt: number): LazyClaim {
  const ending = lazyAbort()
  const lost = lazyAbort()
  return {
    claim: {
      expiresAt,
      get ending() {
        return ending.signal
      },
      get lost() {
        return lost.signal
      },
    },
    lose: () => lost.abort(undefined),
  }
}
