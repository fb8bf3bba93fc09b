import type { Delivery, Settled, Settlement } from '../../model/delivery.ts'
import type { Fault } from '../../model/fault.ts'
import { lost } from '../../transport/outcomes.ts'
import type { Hand } from './hand.ts'
import { type Held, heldOf } from './held.ts'
import { giveBack, type Hiding, hideAll, removeAll } from './leases.ts'
import type { Store } from './store.ts'

export interface Holding {
  readonly store: Store
  readonly hand: Hand
  readonly url: string
}

const invalid: Fault = { code: 'invalid', retryable: false, outcome: 'notApplied' }

/** Acks and releases, both in batches; each item is answered by itself. */
export async function settleBatch(
  holding: Holding,
  batch: readonly Settlement[],
): Promise<readonly Settled[]> {
  const { store, url } = holding
  const outcomes = new Map<Settlement, Settled>()
  const acks = new Map<Held, Settlement>()
  const releases = new Map<Held, Settlement & { readonly as: 'released' }>()
  for (const settlement of batch) {
    const held = ours(holding, settlement.delivery)
    if (held === undefined || acks.has(held) || releases.has(held)) outcomes.set(settlement, lost)
    else if (settlement.as === 'acked') acks.set(held, settlement)
    else if (settlement.as === 'released') releases.set(held, settlement)
    // There is no shelf here; a layer brings one.
    else outcomes.set(settlement, { ok: false, fault: invalid })
  }
  await sendFollowersBack(holding, [...releases.keys()])
  const hidings = [...releases].map(([held, { delayMs }]): Hiding => {
    return { held, hiddenMs: Number.isNaN(delayMs) ? 0 : Math.max(0, delayMs) }
  })
  const [acked, released] = await Promise.all([
    removeAll(store, url, [...acks.keys()]),
    hideAll(store, url, hidings),
  ])
  const ended = [...acks, ...releases].map(([held, settlement], at) => {
    const outcome = [...acked, ...released][at] ?? lost
    outcomes.set(settlement, outcome)
    return [held, outcome] as const
  })
  await letGo(holding, ended)
  return batch.map((settlement) => outcomes.get(settlement) ?? lost)
}

/** Sets the leases to `leaseMs` from now, but to 12 hours from the receive at most; beyond them a message is lost. */
export async function renewBatch(
  holding: Holding,
  batch: readonly Delivery[],
  leaseMs: number,
): Promise<readonly Settled[]> {
  const all = batch.map((delivery) => ours(holding, delivery))
  const outcomes = await renewHeld(
    holding,
    all.filter((held) => held !== undefined),
    leaseMs,
  )
  return all.map((held) => (held && outcomes.get(held)) ?? lost)
}

export async function renewHeld(
  holding: Holding,
  all: readonly Held[],
  leaseMs: number,
): Promise<ReadonlyMap<Held, Settled>> {
  const { clock } = holding.store
  const now = clock.now()
  const outcomes = new Map<Held, Settled>()
  const open = all.filter((held) => held.lastEndsAt - now >= 1_000)
  const hidings = open.map((held) => ({ held, hiddenMs: leaseMs }))
  const answers = await hideAll(holding.store, holding.url, hidings)
  for (const [at, held] of open.entries()) {
    const outcome = answers[at] ?? lost
    outcomes.set(held, outcome)
    if (outcome.ok) held.endsAt = Math.min(now + leaseMs, held.lastEndsAt)
  }
  for (const held of all) {
    if (!outcomes.has(held)) outcomes.set(held, lost)
  }
  await letGo(
    holding,
    [...outcomes].filter(([, outcome]) => !outcome.ok),
  )
  return outcomes
}

/**
 * Undefined when it is no longer ours. What our own clock says is enough: an old receipt of a standard queue is not refused by
 * SQS, which answers a delete with success and keeps the message.
 */
function ours(holding: Holding, delivery: Delivery): Held | undefined {
  const { store, hand } = holding
  const held = heldOf(delivery)
  if (held === undefined || !hand.has(held)) return undefined
  if (held.endsAt > store.clock.now()) return held
  dropLost(holding, held)
  return undefined
}

/** What waits in memory behind a message that has failed goes back before it does: nothing of its group may overtake it. */
async function sendFollowersBack(
  { store, hand, url }: Holding,
  failed: readonly Held[],
): Promise<void> {
  await giveBack(
    store,
    url,
    failed.flatMap((held) => hand.takeFollowers(held)),
  )
}

/** Drops what nobody has renewed: its holder hangs, or never heard of it. It comes again, before its followers. */
export function dropExpired(holding: Holding): void {
  for (const held of holding.hand.expired(holding.store.clock.now())) dropLost(holding, held)
}

function dropLost(holding: Holding, held: Held): void {
  held.lose()
  // Its followers are off the tray before its group goes on. Never rejects.
  void sendFollowersBack(holding, [held])
  holding.hand.drop(held)
}

async function letGo(
  holding: Holding,
  ended: readonly (readonly [Held, Settled])[],
): Promise<void> {
  const gone: Held[] = []
  for (const [held, outcome] of ended) {
    if (!outcome.ok && outcome.fault.code !== 'lost') continue
    if (!outcome.ok) {
      held.lose()
      gone.push(held)
    }
    holding.hand.drop(held)
  }
  // A lost one comes again, to anybody: its followers must come after it.
  await sendFollowersBack(holding, gone)
}
