import {
  type Dead,
  type Delivery,
  type Released,
  type Settled,
  type Settlement,
  settled,
} from '../../model/delivery.ts'
import type { Script } from '../../redis/call.ts'
import type { Reply } from '../../redis/wire.ts'
import { DELAY_MAX_MS } from '../../transport/keeps-all.ts'
import { lost } from '../../transport/outcomes.ts'
import { givenBack, lastHistory } from '../../transport/settling.ts'
import { stateFields } from './entry.ts'
import type { Hand } from './hand.ts'
import { type Held, heldOf } from './held.ts'
import type { QueueKeys } from './keys.ts'
import { scripts } from './script.ts'
import { type RunOptions, run, type Store } from './store.ts'
import { claimAt, markOf } from './streams.ts'
import { SETTLE_STEP } from './traits.ts'

/** Ends deliveries, each kind in one script. A lease that ran out still counts until somebody took the message. */
export async function settleBatch(
  store: Store,
  queue: QueueKeys,
  hand: Hand,
  batch: readonly Settlement[],
): Promise<readonly Settled[]> {
  const ackedAlone = allAcked(batch)
  if (ackedAlone !== undefined) return await ackMany(store, queue, hand, ackedAlone)
  const acked: Held[] = []
  const released: (readonly [Held, Released])[] = []
  const dead: (readonly [Held, Dead])[] = []
  for (const settlement of batch) {
    const held = heldOf(settlement.delivery)
    if (held === undefined) continue
    if (settlement.as === 'acked') acked.push(held)
    else if (settlement.as === 'released') released.push([held, settlement])
    else dead.push([held, settlement])
  }
  const [forAck, forRelease, forDeath] = await Promise.all([
    ackAll(store, queue, acked),
    releaseAll(store, queue, released),
    inSteps(dead, (step) => act(store, scripts.BURY, queue, step, buryArgs)),
  ])
  const done = { acked: forAck, released: forRelease, dead: forDeath }
  return batch.map((settlement) => {
    const held = heldOf(settlement.delivery)
    if (held === undefined) return lost
    hand.drop(held)
    // Twice in one batch, the second one is late.
    if (done[settlement.as].delete(held)) return settled
    held.lose()
    return lost
  })
}

/** Those of a batch of nothing but acks, each once, that one script takes; most batches are such. */
function allAcked(batch: readonly Settlement[]): readonly Held[] | undefined {
  if (batch.length > SETTLE_STEP) return undefined
  const all: Held[] = []
  for (const { as, delivery } of batch) {
    const held = as === 'acked' ? heldOf(delivery) : undefined
    if (held === undefined) return undefined
    all.push(held)
  }
  return new Set(all).size === all.length ? all : undefined
}

async function ackMany(
  store: Store,
  queue: QueueKeys,
  hand: Hand,
  all: readonly Held[],
): Promise<readonly Settled[]> {
  const ours = await ackStep(store, queue, all)
  for (const held of all) hand.drop(held)
  if (ours.length === all.length) return new Array<Settled>(all.length).fill(settled)
  const still = new Set(ours)
  return all.map((held) => {
    if (still.has(held)) return settled
    held.lose()
    return lost
  })
}

async function ackAll(store: Store, queue: QueueKeys, all: readonly Held[]): Promise<Set<Held>> {
  return await inSteps([...new Set(all)], (step) => ackStep(store, queue, step))
}

/** Answers those that were still ours. */
async function ackStep(
  store: Store,
  queue: QueueKeys,
  step: readonly Held[],
): Promise<readonly Held[]> {
  const byMark = Map.groupBy(step, ({ claim }) => markOf(claim))
  const sorted = [...byMark.values()].flat()
  const args = [queue.group, String(byMark.size)]
  for (const [mark, some] of byMark) {
    args.push(mark, String(some.length))
    for (const held of some) args.push(held.entryId)
    for (const held of some) args.push(held.delivery.envelope.id)
  }
  const keys = new Set(step.flatMap((held) => held.delivery.envelope.orderingKey ?? []))
  args.push(String(keys.size), ...keys)
  for (const claim of new Set(step.map((held) => held.claim))) args.push(claim)
  const reply = await run(store, scripts.ACK, queue, args)
  return reply === 1 ? sorted : kept(sorted, reply)
}

type ReleaseLike = Pick<Released, 'delayMs' | 'counted' | 'attempt'>

function releaseAll(
  store: Store,
  queue: QueueKeys,
  all: readonly (readonly [Held, ReleaseLike])[],
  options?: RunOptions,
): Promise<Set<Held>> {
  return inSteps(all, (step) => act(store, scripts.RELEASE, queue, step, releaseArgs, options))
}

function releaseArgs([held, release]: readonly [Held, ReleaseLike]): readonly string[] {
  const { envelope, sentAt, deliveries = 1 } = held.delivery
  const { alone, delayMs, history } = givenBack(held.delivery, release, DELAY_MAX_MS)
  const state = stateFields({ sentAt, deliveries, history, alone })
  const place = [held.claim, held.entryId, envelope.id]
  return [...place, String(Math.ceil(delayMs)), alone ? '1' : '0', String(state.length), ...state]
}

function buryArgs([held, death]: readonly [Held, Dead]): readonly string[] {
  const { envelope, sentAt, deliveries = 1 } = held.delivery
  const history = lastHistory(held.delivery, death)
  const state = stateFields({ sentAt, deliveries, history, alone: false })
  const place = [held.claim, held.entryId, envelope.id]
  return [...place, death.errorClass, death.reason, String(state.length), ...state]
}

async function act<Item extends readonly [Held, unknown]>(
  store: Store,
  script: Script,
  queue: QueueKeys,
  step: readonly Item[],
  argsOf: (item: Item) => readonly string[],
  options?: RunOptions,
): Promise<readonly Held[]> {
  const args = [queue.group, ...step.flatMap(argsOf)]
  const reply = await run(store, script, queue, args, options)
  return kept(
    step.map(([held]) => held),
    reply,
  )
}

/** Those that were still ours. */
function kept(all: readonly Held[], reply: Reply): readonly Held[] {
  return Array.isArray(reply) ? all.filter((_, at) => reply[at] === 1) : []
}

async function inSteps<Item>(
  all: readonly Item[],
  work: (step: readonly Item[]) => Promise<readonly Held[]>,
): Promise<Set<Held>> {
  const done = new Set<Held>()
  for (let at = 0; at < all.length; at += SETTLE_STEP) {
    for (const held of await work(all.slice(at, at + SETTLE_STEP))) done.add(held)
  }
  return done
}

/** Gives back, as it was, what nobody waits for any more. */
export async function giveBack(
  store: Store,
  queue: QueueKeys,
  all: readonly Held[],
  options: RunOptions,
): Promise<void> {
  const uncounted = { delayMs: 0, counted: false }
  await releaseAll(
    store,
    queue,
    all.map((held) => [held, uncounted] as const),
    options,
  )
}

/** Sets the leases of exactly these deliveries; a part of a batch moves to a claim of its own. */
export async function renewBatch(
  store: Store,
  queue: QueueKeys,
  hand: Hand,
  batch: readonly Delivery[],
  leaseMs: number,
): Promise<readonly Settled[]> {
  const all = [...new Set(batch.map(heldOf))].filter((held) => held !== undefined)
  const still = new Set<Held>()
  for (let at = 0; at < all.length; at += SETTLE_STEP) {
    const step = all.slice(at, at + SETTLE_STEP)
    const fresh = store.newClaim()
    const pairs = step.flatMap((held) => [held.claim, held.entryId])
    const args = [queue.group, String(Math.ceil(leaseMs)), fresh, ...pairs]
    const reply = await run(store, scripts.RENEW, queue, args)
    for (const [place, held] of step.entries()) {
      const answer = Array.isArray(reply) ? reply[place] : 0
      if (answer === 2) hand.move(held, claimAt(fresh, markOf(held.claim)))
      if (answer === 1 || answer === 2) still.add(held)
    }
  }
  return batch.map((delivery) => {
    const held = heldOf(delivery)
    if (held && still.has(held)) return settled
    if (held) {
      hand.drop(held)
      held.lose()
    }
    return lost
  })
}
