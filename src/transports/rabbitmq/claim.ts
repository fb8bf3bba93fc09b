import type { Claim } from '../../model/delivery.ts'
import { LazyAbort } from '../../model/lazy-abort.ts'

/** Ours while the channel lives. A class for the reason that LazyAbort gives. */
export class SessionClaim implements Claim {
  readonly expiresAt: undefined = undefined
  #ending: LazyAbort | undefined
  #lost: LazyAbort | undefined

  get ending(): AbortSignal {
    this.#ending ??= new LazyAbort()
    return this.#ending.signal
  }

  get lost(): AbortSignal {
    this.#lost ??= new LazyAbort()
    return this.#lost.signal
  }

  lose(): void {
    this.#lost ??= new LazyAbort()
    this.#lost.abort()
  }
}
