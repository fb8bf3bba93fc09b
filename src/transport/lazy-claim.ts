import type { Claim } from '../model/delivery.ts'
import { LazyAbort } from '../model/lazy-abort.ts'

/**
 * The claim of a lease, whose signals cost nothing until somebody looks at them: an AbortController costs more than a
 * message's share of a whole receive, and most are never looked at. A class for the reason that LazyAbort gives.
 */
export class LazyClaim implements Claim {
  /** Epoch ms by the caller's clock, a hint. */
  readonly expiresAt: number
  readonly isOver: (() => boolean) | undefined
  #ending: LazyAbort | undefined
  #lost: LazyAbort | undefined

  constructor(expiresAt: number, isOver?: () => boolean) {
    this.expiresAt = expiresAt
    this.isOver = isOver
  }

  get ending(): AbortSignal {
    this.#ending ??= new LazyAbort()
    return this.#ending.signal
  }

  get lost(): AbortSignal {
    this.#lost ??= new LazyAbort()
    return this.#lost.signal
  }

  /** For the store: the claim is no longer the holder's. */
  lose(): void {
    this.#lost ??= new LazyAbort()
    this.#lost.abort()
  }
}
