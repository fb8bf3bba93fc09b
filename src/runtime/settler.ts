import { type Clock, pause } from '../model/clock.ts'
import type { Delivery, Settled, Settlement } from '../model/delivery.ts'
import type { Fault } from '../model/fault.ts'
import type { Subscription, Transport } from '../transport/transport.ts'
import { gatherer } from './gatherer.ts'
import { heldSettlements } from './held-settlements.ts'

/** Tells the backend how deliveries ended, many in one call, and keeps trying while the claim may still hold. */
export interface Settler {
  settle(settlement: Settlement): Promise<SettleOutcome>
  /** The same without a promise, for what is done once per message; `told` is called once, never before this returns. */
  tell(settlement: Settlement, told: (outcome: SettleOutcome) => void): void
  /** How many wait for an ordering key that somebody's open transaction holds. */
  readonly held: number
  /** A sentence when one of these has waited for long. */
  problems(): readonly string[]
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
  readonly queue: { readonly name: string }
  /** `held` has grown by this one. */
  readonly onHeld: (delivery: Delivery) => void
}

const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000
/** Its key goes on this long after the end of the transaction that held it. */
const HELD_RETRY_MAX_MS = 250

export function settler(options: SettlerOptions): Settler {
  const { subscription, transport, clock } = options
  /** Of the batch that is under way, or was last: there is one at a time. */
  let flushedAt = 0
  const maxBatch = transport.traits.limits.settleBatch
  const batches = gatherer<Settlement, Settled>({
    maxBatch,
    flush: (batch) => {
      flushedAt = clock.now()
      return settleFaultless(subscription, transport, batch)
    },
  })
  /** Beside the others, which wait for none of these; all of them together have one connection of the backend. */
  const apart = gatherer<Settlement, Settled>({
    maxBatch,
    flush: (batch) => settleFaultless(subscription, transport, batch),
  })
  const held = heldSettlements(options.queue.name, clock)

  const lineOf = (settlement: Settlement) => (held.has(settlement) ? apart : batches)
  /** What became of one whose first try was not answered ok. */
  const goOn = async (
    settlement: Settlement,
    first: Settled,
    flushedAt: number,
  ): Promise<SettleOutcome> => {
    let giveUpAt = flushedAt + options.leaseMs
    let waitMs = RETRY_FIRST_MS
    let unclear = false
    for (let answer = first; ; answer = await lineOf(settlement).add(settlement)) {
      if (answer.ok) return SETTLED
      const { fault } = answer
      if (fault.code === 'lost') return { kind: 'lost', unclear }
      if (fault.code === 'held') {
        // The backend is there, and the lease is renewed for as long as this is not settled.
        giveUpAt = clock.now() + options.leaseMs
        waitMs = Math.min(HELD_RETRY_MAX_MS, waitMs)
        if (held.enter(settlement)) options.onHeld(settlement.delivery)
      }
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

  const tell: Settler['tell'] = (settlement, told) =>
    batches.put(settlement, (answer) => {
      if (answer.ok) told(SETTLED)
      else {
        void goOn(settlement, answer, flushedAt)
          .finally(() => held.leave(settlement))
          .then(told)
      }
    })
  return {
    tell,
    settle: (settlement) => new Promise((resolve) => tell(settlement, resolve)),
    get held() {
      return held.size
    },
    problems: held.problems,
  }
}

const SETTLED: SettleOutcome = { kind: 'settled' }

async function settleFaultless(
  subscription: Subscription,
  transport: Transport,
  batch: readonly Settlement[],
): Promise<readonly Settled[]> {
  try {
    const outcomes = await subscription.settle(batch)
    if (outcomes.length === batch.length) return outcomes
    throw new Error(`asked for ${batch.length} outcomes, got ${outcomes.length}`)
  } catch (cause) {
    const fault = { ...transport.diagnose(cause), cause }
    return new Array<Settled>(batch.length).fill({ ok: false, fault })
  }
}
