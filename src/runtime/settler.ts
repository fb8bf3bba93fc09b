import { type Clock, pause } from '../model/clock.ts'
import type { Settled, Settlement } from '../model/delivery.ts'
import type { Fault } from '../model/fault.ts'
import type { Subscription, Transport } from '../transport/transport.ts'
import { gatherer } from './gatherer.ts'

/** Tells the backend how deliveries ended, many in one call, and keeps trying while the claim may still hold. */
export interface Settler {
  settle(settlement: Settlement): Promise<SettleOutcome>
}

/** `failed`: the backend refused or stayed away; the message will come back when its lease ends. */
export type SettleOutcome =
  | { readonly kind: 'settled' }
  /** `unclear`: an earlier try had an unknown outcome, so it may have been this very settlement that made it lost. */
  | { readonly kind: 'lost'; readonly unclear: boolean }
  | { readonly kind: 'failed'; readonly fault: Fault }

export interface SettlerOptions {
  readonly transport: Transport
  readonly subscription: Subscription
  readonly clock: Clock
  readonly random: () => number
  /** How long to go on trying, in ms: beyond the lease it is no longer ours to settle. */
  readonly leaseMs: number
  /** Fires when the worker must end now. */
  readonly ended: AbortSignal
}

const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000

export function settler(options: SettlerOptions): Settler {
  const { subscription, transport, clock } = options
  const batches = gatherer<Settlement, Settled>({
    maxBatch: transport.traits.limits.settleBatch,
    flush: (batch) => settleFaultless(subscription, transport, batch),
  })

  const settle = async (settlement: Settlement): Promise<SettleOutcome> => {
    const giveUpAt = clock.now() + options.leaseMs
    let waitMs = RETRY_FIRST_MS
    let unclear = false
    for (;;) {
      const settled = await batches.add(settlement)
      if (settled.ok) return { kind: 'settled' }
      const { fault } = settled
      if (fault.code === 'lost') return { kind: 'lost', unclear }
      unclear ||= fault.outcome === 'unknown'
      // A fault that nobody knows may be over at the next try; giving up makes finished work run again.
      const hopeless = !fault.retryable && fault.code !== 'unknown'
      if (hopeless || options.ended.aborted || clock.now() + waitMs >= giveUpAt) {
        return { kind: 'failed', fault }
      }
      await pause(clock, waitMs * (0.5 + options.random() / 2), options.ended)
      waitMs = Math.min(RETRY_MAX_MS, waitMs * 2)
    }
  }
  return { settle }
}

async function settleFaultless(
  subscription: Subscription,
  transport: Transport,
  batch: readonly Settlement[],
): Promise<readonly Settled[]> {
  try {
    return await subscription.settle(batch)
  } catch (cause) {
    const fault = { ...transport.diagnose(cause), cause }
    return new Array<Settled>(batch.length).fill({ ok: false, fault })
  }
}
