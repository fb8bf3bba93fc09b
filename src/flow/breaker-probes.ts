import type { Cancel } from '../model/clock.ts'
import type { Lease } from '../store/leases.ts'
import { type BreakerSettings, breakerProbed, breakerProbing } from './breaker.ts'
import type { BoardUser } from './breaker-board.ts'
import { holderOf } from './holder.ts'
import { queueWarning } from './queue-warning.ts'

/** The right to send the one probe of the fleet to a downstream. */
export interface Probe {
  readonly downstream: string
  readonly lease: Lease
}

export interface BreakerProbes {
  /** The probe that this process may send now; undefined: not now. Asks for it in the background. */
  take(downstream: string): Probe | undefined
  /** What became of it. */
  end(probe: Probe, outcome: 'ok' | 'failed' | 'undecided'): Promise<void>
  close(): void
}

export interface BreakerProbesOptions extends BoardUser {
  readonly settings: BreakerSettings
}

/** A prober that died keeps the others from probing for so long. */
const LEASE_MS = 30_000
/** Taken, but no message came to use it. */
const UNUSED_MS = 20_000
const ASK_AGAIN_MS = 1_000

const HELD_MAX = 1_000

type Held =
  | { readonly as: 'asking' }
  | { readonly as: 'refused'; readonly until: number }
  | { readonly as: 'ready'; readonly probe: Probe; readonly until: number }
  | { readonly as: 'sent'; readonly stopRenewing: Cancel }

export function breakerProbes(options: BreakerProbesOptions): BreakerProbes {
  const { queue, settings, clock, random, board } = options
  const { leases } = options.share
  const holder = holderOf(random)
  const held = new Map<string, Held>()

  const warn = queueWarning(options)

  const ask = async (downstream: string): Promise<void> => {
    held.set(downstream, { as: 'asking' })
    const name = leaseName(queue, downstream)
    try {
      const lease = await leases.acquire(name, holder, LEASE_MS)
      const next =
        lease &&
        (await board.change(downstream, (state) => breakerProbing(state, lease.fence, clock.now())))
      if (
        lease !== undefined &&
        next?.phase === 'half-open' &&
        next.fence === String(lease.fence)
      ) {
        const until = clock.now() + UNUSED_MS
        held.set(downstream, { as: 'ready', probe: { downstream, lease }, until })
        return
      }
      if (lease !== undefined) await leases.release(name, lease)
    } catch (error) {
      warn(`nobody can be let through to ${JSON.stringify(downstream)}`, error)
    }
    held.delete(downstream)
    held.set(downstream, { as: 'refused', until: clock.now() + ASK_AGAIN_MS })
    if (held.size > HELD_MAX) forgetOldest(held)
  }

  const renewing = ({ downstream, lease }: Probe): Cancel => {
    let cancel: Cancel = () => undefined
    let stopped = false
    const arm = (): void => {
      if (!stopped) cancel = clock.after(LEASE_MS / 3, () => void renew())
    }
    const renew = async (): Promise<void> => {
      try {
        await leases.renew(leaseName(queue, downstream), lease, LEASE_MS)
      } catch (error) {
        warn(`the lease of the probe to ${JSON.stringify(downstream)} was not renewed`, error)
      }
      arm()
    }
    arm()
    return () => {
      stopped = true
      cancel()
    }
  }

  return {
    take: (downstream) => {
      const now = held.get(downstream)
      if (now?.as === 'asking' || now?.as === 'sent') return undefined
      if (now?.as === 'refused' && isAhead(now.until, clock.now(), ASK_AGAIN_MS)) return undefined
      if (now?.as !== 'ready' || !isAhead(now.until, clock.now(), UNUSED_MS)) {
        void ask(downstream)
        return undefined
      }
      held.set(downstream, { as: 'sent', stopRenewing: renewing(now.probe) })
      return now.probe
    },
    end: async (probe, outcome) => {
      const { downstream, lease } = probe
      const now = held.get(downstream)
      if (now?.as === 'sent') now.stopRenewing()
      try {
        await board.change(downstream, (state) =>
          breakerProbed(state, lease.fence, outcome, clock.now(), settings),
        )
        await leases.release(leaseName(queue, downstream), lease)
      } catch (error) {
        warn(`what became of the probe to ${JSON.stringify(downstream)} is not known to all`, error)
      } finally {
        held.delete(downstream)
      }
    },
    close: () => {
      for (const one of held.values()) if (one.as === 'sent') one.stopRenewing()
    },
  }
}

/** Not yet over; one that is further ahead than it can be was written before the clock was set back. */
function isAhead(until: number, now: number, mostMs: number): boolean {
  return now < until && until - now <= mostMs
}

/** Those that ask or are sent end by themselves; a right that nobody uses ends with its lease. */
function forgetOldest(held: Map<string, Held>): void {
  for (const [downstream, one] of held) {
    if (one.as !== 'refused' && one.as !== 'ready') continue
    held.delete(downstream)
    return
  }
}

function leaseName(queue: string, downstream: string): string {
  return `flow:probe:${queue}:${downstream}`
}
