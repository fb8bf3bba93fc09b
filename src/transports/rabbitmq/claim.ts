import type { Claim } from '../../model/delivery.ts'
import { LazyAbort } from '../../model/lazy-abort.ts'

/** The life of a channel: all that it brings is ours as long, and all of it has the same signals. */
export interface Session {
  readonly ending: LazyAbort
  readonly lost: LazyAbort
}

export function newSession(): Session {
  return { ending: new LazyAbort(), lost: new LazyAbort() }
}

/** One for each delivery, which others know it by. A class for the reason that LazyAbort gives. */
export class SessionClaim implements Claim {
  readonly expiresAt: undefined = undefined
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  get ending(): AbortSignal {
    return this.#session.ending.signal
  }

  get lost(): AbortSignal {
    return this.#session.lost.signal
  }
}
