import type { Claim, Delivery } from '../../model/delivery.ts'
import { freshHistory } from '../../model/history.ts'
import { LazyAbort } from '../../model/lazy-abort.ts'
import type { Read } from './message.ts'
import type { Pulse } from './pulse.ts'

/** The life of a channel: all that it brings is ours as long, and all of it has the same signals. */
export interface Session {
  readonly ending: LazyAbort
  readonly lost: LazyAbort
  /** Of its connection. */
  readonly pulse: Pulse | undefined
}

export function newSession(pulse: Pulse | undefined): Session {
  return { ending: new LazyAbort(), lost: new LazyAbort(), pulse }
}

/** One for each delivery, which others know it by. A class for the reason that LazyAbort gives. */
class SessionClaim implements Claim {
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

  isOver(): boolean {
    const { lost, pulse } = this.#session
    return lost.aborted || pulse?.isOver() === true
  }
}

/** A message as it is handed out: without attempts, which the broker does not keep, and ours while the channel lives. */
export function inSession(
  session: Session,
  message: Read,
  { lane, receipt }: Pick<Delivery, 'lane' | 'receipt'>,
): Delivery {
  return {
    ...message,
    history: freshHistory,
    alone: false,
    fence: undefined,
    claim: new SessionClaim(session),
    lane,
    position: undefined,
    receipt,
  }
}
