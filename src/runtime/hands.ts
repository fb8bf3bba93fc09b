import type { Admitted } from '../flow/queue-flow.ts'
import type { Delivery } from '../model/delivery.ts'
import type { LeaseKeeper } from '../model/lease-keeper.ts'
import { promised } from '../model/maybe-promise.ts'
import { claimWatch } from './claim-watch.ts'
import { type Conclude, sayBroken } from './conclude.ts'
import type { Counting } from './counters.ts'
import { deadlines } from './deadlines.ts'
import type { Message } from './message.ts'
import { notifier } from './notifier.ts'
import { Run, type RunDeps, type RunEnd } from './run.ts'
import type { Settler } from './settler.ts'
import { type SlotCount, slotCount } from './slot-count.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** What a worker has in its hands: handlers that run, and settlements on their way. */
export interface Hands {
  /** How many more deliveries may come now. */
  slots(): number
  /** Whether a message that must run alone would have neighbours: what runs, waits in a slot, or is being settled. */
  isCrowded(): boolean
  /** Resolves when it would have none. */
  uncrowded(): Promise<void>
  /** Before anything else: who renews, and who settles. */
  equip(parts: Equipment): void
  /** Renews this one until it is settled; `lose` is called when the claim is gone. */
  hold(delivery: Delivery, lose: () => void, now: number): void
  /**
   * By our clock somebody else may have it by now, though nobody has told us yet.
   * @param cameAt epoch ms, for one that is not held yet
   */
  isOver(delivery: Delivery, cameAt?: number): boolean
  /** @param judgedMs what the schema took of the attempt's time */
  start(delivery: Delivery, message: Message<unknown>, admitted: Admitted, judgedMs: number): void
  /** A slot for one that does not run yet. The answer frees it, and is called once. */
  reserve(delivery: Delivery): () => void
  /** Settles in the background; the slot is free already, but what is unsettled stays bounded. */
  settleLater(delivery: Delivery, act: Settle): void
  /** Its settlement waits for somebody's open transaction. */
  held(delivery: Delivery): void
  /** Resolves at the next change of any of this. */
  changed(): Promise<void>
  notify(): void
  /** Resolves when nothing runs and everything is settled. */
  empty(): Promise<void>
  shutDown(): void
}

export interface Equipment {
  readonly keeper: LeaseKeeper<Delivery>
  readonly concluding: Conclude
  readonly settler: Pick<Settler, 'held'>
}

type Settle = (to: Conclude) => Promise<void>

/** Nobody runs it: the settlement itself finds out that it is lost. */
function unmoved(): void {}

/** Runs that never ended, beyond the concurrency: more would mean a leak without bound. */
const ABANDONED_MAX = 1_000
/**
 * Settlements that wait for keys that open transactions hold take no room from other messages, up to so many: each is in memory, with a
 * lease that is renewed.
 */
const HELD_MAX = 1_000

export function hands<Tx>(deps: WorkerDeps<Tx>): Hands {
  const { queue, flow, transport } = deps
  const running = new Set<Run<Tx>>()
  // Lease stores tell the keeper; sessions and assignments tell by the claim's own signal.
  const claims = transport.traits.claim.kind === 'lease' ? undefined : claimWatch()
  const change = notifier()
  const slots = slotCount()
  let parts: Partial<Equipment> = {}

  const isDone = (delivery: Delivery): void => {
    parts.keeper?.letGo(delivery)
    slots.settled(delivery)
    change.notify()
  }

  const settle = async (delivery: Delivery, act: Settle): Promise<void> => {
    slots.settle(delivery)
    parts.keeper?.hold(delivery, unmoved, deps.clock.now())
    const to = parts.concluding
    await promised(() => to && act(to)).catch((error) => sayBroken(deps, delivery, error))
    isDone(delivery)
  }

  const onEnd = (run: Run<Tx>, end: RunEnd): void => {
    const { delivery, ticket, message } = run
    running.delete(run)
    flow.ended(ticket)
    claims?.remove(delivery.claim.lost, run.lose)
    slots.ended(delivery)
    const key = message.idempotencyKey
    const ended = { delivery, key, end, effect: run.effectState, mark: run.effectMark, ticket }
    parts.concluding?.run(ended, () => isDone(delivery))
    change.notify()
  }

  const runDeps: RunDeps<Tx> = {
    ...deps,
    isOver: (delivery) => isOver(parts, delivery),
    deadlines: deadlines(deps.clock, queue.handlerTimeoutMs, (deadline) => {
      for (const run of running) run.timeOut(deadline)
    }),
    onEnd,
    onReturned: change.notify,
  }

  const start: Hands['start'] = (delivery, message, admitted, judgedMs) => {
    const ticket = flow.began(delivery.history, admitted)
    const run = new Run(runDeps, delivery, message, ticket, judgedMs)
    running.add(run)
    parts.keeper?.hold(delivery, run.lose, ticket.at)
    slots.take(delivery)
    claims?.add(delivery.claim.lost, run.lose)
    run.start()
  }

  return {
    slots: () => freeOf(flow.slots(), deps.counters, slots, parts),
    isCrowded: () => isCrowded(slots, parts),
    uncrowded: async () => {
      while (isCrowded(slots, parts)) await change.wait()
    },
    equip: (given) => {
      parts = given
    },
    hold: (delivery, lose, now) => parts.keeper?.hold(delivery, lose, now),
    isOver: (delivery, cameAt) => isOver(parts, delivery, cameAt),
    start,
    reserve: (delivery) => slots.reserve(delivery, change.notify),
    settleLater: (delivery, act) => void settle(delivery, act),
    held: (delivery) => {
      slots.held(delivery)
      change.notify()
    },
    changed: change.wait,
    notify: change.notify,
    empty: async () => {
      while (slots.taken > 0 || slots.settling > 0) await change.wait()
    },
    shutDown: () => {
      for (const one of running) one.shutDown()
    },
  }
}

function isOver({ keeper }: Partial<Equipment>, delivery: Delivery, cameAt?: number): boolean {
  return keeper?.isOver(delivery, cameAt) === true || delivery.claim.isOver?.() === true
}

function freeOf(
  most: number,
  { abandoned }: Counting,
  { taken, settling, alone }: SlotCount,
  { settler }: Partial<Equipment>,
): number {
  if (alone || abandoned >= ABANDONED_MAX + most) return 0
  const moving = settling - Math.min(HELD_MAX, settler?.held ?? 0)
  return Math.min(most - taken, 2 * most - taken - moving)
}

/** A settlement that waits for somebody's open transaction may wait for long, and kills nobody. */
function isCrowded({ taken, settling }: SlotCount, { settler }: Partial<Equipment>): boolean {
  return taken > 0 || settling > (settler?.held ?? 0)
}

export function giveBack(
  hands: Pick<Hands, 'settleLater'>,
  batch: readonly Delivery[],
  delayMs: number,
): void {
  for (const delivery of batch) {
    hands.settleLater(delivery, (to) => to.giveBack(delivery, delayMs))
  }
}
