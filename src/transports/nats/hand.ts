import type { Cancel } from '../../model/clock.ts'
import { answeredBy } from './ack.ts'
import type { Held } from './held.ts'
import type { Source } from './lane.ts'
import type { Store } from './store.ts'

/** The messages that one subscription holds, and the renewing that keeps them ours. */
export interface Hand {
  take(held: readonly Held[]): void
  /** Undefined when it is not ours any more; its claim has been told. */
  find(receipt: unknown): Held | undefined
  /** It has ended, or somebody else may have it. */
  drop(held: Held): void
  /** The consumer that handed these out is gone: whoever has them next, they are not ours. */
  loseAllOf(source: Source): void
  /** Nothing is held or renewed any more; answers what was. */
  empty(): readonly Held[]
  /** A lease may have become shorter. */
  look(): void
}

/** The ack wait is renewed this many times while it lasts. */
const RENEWALS = 3

/**
 * The server's ack wait is one for all workers and short; leases are as long as the worker says. So a message is renewed at
 * the server while its lease lasts, and given back when it has run out. A process that was stopped or blocked renews
 * nothing, and sees by its own clock that the ack wait has passed.
 */
export function openHand(store: Store, ackWaitMs: number): Hand {
  const { clock } = store
  const all = new Set<Held>()
  const stepMs = ackWaitMs / RENEWALS
  let cancel: Cancel | undefined
  let wakesAt = Number.POSITIVE_INFINITY

  const lose = (held: Held): void => {
    all.delete(held)
    held.claim.lose()
  }
  const tend = (held: Held, now: number): void => {
    if (now >= held.safeUntil) lose(held)
    else if (now >= held.leaseUntil && !held.leaving) {
      lose(held)
      // Nothing is written down, so the next holder sees that this one never came back.
      answeredBy(store, held, '-NAK').catch(() => {})
    } else if (now >= held.renewAt) {
      held.renewAt = now + stepMs
      renew(store, held, ackWaitMs).catch(() => {})
    }
  }
  const arm = (): void => {
    let at = Number.POSITIVE_INFINITY
    for (const held of all) {
      const end = held.leaving ? held.safeUntil : Math.min(held.leaseUntil, held.safeUntil)
      at = Math.min(at, held.renewAt, end)
    }
    if (at >= wakesAt) return
    cancel?.()
    wakesAt = at
    cancel = clock.after(Math.max(0, at - clock.now()), () => {
      wakesAt = Number.POSITIVE_INFINITY
      const now = clock.now()
      for (const held of all) tend(held, now)
      arm()
    })
  }

  return {
    take(held) {
      for (const one of held) {
        one.renewAt = one.safeUntil - ackWaitMs + stepMs
        all.add(one)
      }
      arm()
    },
    find(receipt) {
      const held = heldBy(all, receipt)
      if (held === undefined) return undefined
      const now = clock.now()
      if (now < held.safeUntil && (held.leaving || now < held.leaseUntil)) return held
      tend(held, now)
      return undefined
    },
    drop: (held) => void all.delete(held),
    loseAllOf(source) {
      for (const held of all) if (held.source === source) lose(held)
    },
    empty() {
      cancel?.()
      wakesAt = Number.POSITIVE_INFINITY
      const held = [...all]
      all.clear()
      return held
    },
    look: arm,
  }
}

function heldBy(all: ReadonlySet<Held>, receipt: unknown): Held | undefined {
  const known: ReadonlySet<unknown> = all
  return known.has(receipt) ? (receipt as Held) : undefined
}

/** Confirmed: the ack wait begins again at some moment after now. */
export async function renew(store: Store, held: Held, ackWaitMs: number): Promise<void> {
  const askedAt = store.clock.now()
  await answeredBy(store, held, '+WPI')
  held.safeUntil = Math.max(held.safeUntil, askedAt + ackWaitMs)
}
