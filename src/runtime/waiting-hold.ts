import type { Clock } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Transport } from '../transport/transport.ts'
import type { Hands } from './hands.ts'

/** Deliveries that wait for somebody's answer before they run: their leases are renewed, and it is known whose was lost. */
export interface WaitingHold {
  /** A batch has come. */
  came(): void
  /** Before anything is waited for. What runs or ends in the turn in which it came needs no renewal before. */
  hold(batch: readonly Delivery[]): void
  /**
   * Lost, or over by our clock: a process that was stopped, or that a handler blocked for so long, still has it in hand, and another
   * worker may have it too.
   */
  isGone(delivery: Delivery): boolean
}

export interface WaitingHoldOptions {
  readonly transport: Transport
  readonly clock: Clock
}

export function waitingHold(
  hands: Pick<Hands, 'hold' | 'isOver'>,
  { transport, clock }: WaitingHoldOptions,
): WaitingHold {
  const gone = new WeakSet<Delivery>()
  // Of a lease the keeper hears; the signal of a lease costs an AbortController once it is looked at.
  const tellsItself = transport.traits.claim.kind !== 'lease'
  /** Of the last batch: what is not held begins in the turn in which it came. */
  let cameAt = 0
  const isLost = (delivery: Delivery): boolean =>
    gone.has(delivery) || (tellsItself && delivery.claim.lost.aborted)
  return {
    came() {
      cameAt = clock.now()
    },
    hold(batch) {
      const now = clock.now()
      for (const delivery of batch) hands.hold(delivery, () => void gone.add(delivery), now)
    },
    isGone: (delivery) => isLost(delivery) || hands.isOver(delivery, cameAt),
  }
}
