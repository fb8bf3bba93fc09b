import type { Clock } from '../model/clock.ts'
import { type Settled, settled } from '../model/delivery.ts'
import { type LeaseKeeper, leaseKeeper } from '../model/lease-keeper.ts'
import type { Logger } from '../model/logger.ts'
import type { HeldSlot, SlotCount, Slots } from '../store/slots.ts'
import { nameGiver } from './name-giver.ts'
import { queueWarning } from './queue-warning.ts'
import { refusedByStore } from './refused-by-store.ts'
import type { SlotFound } from './slot-asks.ts'
import { slotReservations } from './slot-reservations.ts'
import { slotRounds } from './slot-rounds.ts'
import { slotTurns } from './slot-turns.ts'

/** How many messages of one queue, and of each key in it, run side by side: in all workers together, or in this process. */
export interface ConcurrencyLimiter {
  /** Of all messages; undefined: no limit but that of each key. */
  readonly max: number | undefined
  readonly maxPerKey: number | undefined
  /** `max` where all workers share it. */
  readonly sharedMax: number | undefined
  /**
   * A slot, or how long the message waits, in ms, given back without blame. While all slots of the queue are taken it waits here. Rejects with a PermanentError for a payload without a key, or with one that the store refuses.
   *
   * @param suspect the id of one whose worker died: it waits here for no more than a moment, see `SlotReservations`
   */
  ask(payload: unknown, suspect?: string): Promise<RunSlot | SlotWait>
  /** How many messages may be taken at once. */
  appetite(): number
  /** Rejects with what the store threw. */
  count(keysMax: number): Promise<SlotCount>
  /** One sentence; undefined when nothing is wrong. */
  problem(): string | undefined
  /** What waits goes back. */
  stop(): void
  /** After `stop`: when what runs no more is given back, however long the store is away. */
  settled(): Promise<void>
  /** What is not given back yet ends by itself. */
  close(): Promise<void>
}

/** The right of one message to run. */
export interface RunSlot {
  /** Others may have it by now. */
  isOver(): boolean
  /** Told once; at once when it is lost already. */
  whenLost(told: () => void): void
  /** @param ranMs how long its handler took, if one ran */
  release(ranMs?: number): void
}

export interface SlotWait {
  readonly delayMs: number
}

export interface ConcurrencyLimiterOptions {
  readonly queue: string
  readonly max: number | undefined
  readonly perKey: { readonly max: number; key(payload: unknown): string } | undefined
  readonly slots: Slots
  /** Undefined: they are of this process, and end with it. */
  readonly lease: SlotLease | undefined
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
}

export interface SlotLease {
  /** How long a slot is ours without a renewal that got through. */
  readonly ownMs: number
  /** How long a handler may go on once its signal has fired. */
  readonly graceMs: number
}

/** After it has waited in vain. A limit that is passed is worse than a message that is late. */
const AGAIN_MS = 1_000
/** Of a process that keeps its own; it is alive as long as the count is. */
const NO_END_MS = Number.MAX_SAFE_INTEGER

export function concurrencyLimiter(options: ConcurrencyLimiterOptions): ConcurrencyLimiter {
  const { queue, max, perKey, clock, lease } = options
  const pool = `flow:slots:${queue}`
  const limits = { max, maxPerKey: perKey?.max }
  const leaseMs = lease === undefined ? NO_END_MS : storeLeaseMs(lease)
  const rounds = slotRounds({ ...options, pool, limits, leaseMs })
  const keeper = slotKeeper(options, pool, leaseMs)
  const keyOf = perKey && nameGiver({ queue, what: 'concurrencyLimit.perKey.key' }, perKey.key)
  const reservations = slotReservations({ clock, ask: rounds.ask, release: rounds.release })
  const turns = perKey && slotTurns(clock, perKey.max)

  const waitOf = (of: 'pool' | 'key', key: string): number =>
    (of === 'key' ? turns?.next(key) : undefined) ?? AGAIN_MS

  const stop = (): void => {
    reservations.stop()
    rounds.stop()
  }

  return {
    ...limits,
    sharedMax: lease && max,
    ask: async (payload, suspect) => {
      const key = keyOf?.(payload)
      const found = await (suspect === undefined ? rounds.ask(key) : reservations.ask(suspect, key))
      if (found === undefined) return { delayMs: AGAIN_MS }
      if (found.as === 'refused')
        throw refusedByStore(queue, 'slot (concurrencyLimit)', found.cause)
      if (found.as === 'full') return { delayMs: waitOf(found.of, key ?? '') }
      turns?.held(key ?? '')
      return runSlot(found, keeper, (slot, ranMs) => {
        if (ranMs !== undefined) turns?.ran(key ?? '', ranMs)
        rounds.release(slot)
      })
    },
    appetite: rounds.appetite,
    count: (keysMax) => options.slots.count(pool, keysMax),
    problem: () =>
      keeper.failingSince === undefined
        ? undefined
        : `queue "${queue}": its slots (concurrencyLimit) cannot be renewed`,
    stop,
    settled: rounds.settled,
    close: () => {
      stop()
      keeper.close()
      return rounds.end()
    },
  }
}

/**
 * The store keeps it longer than we do: until our timer has found out that it is over (a tenth of the time, see `leaseKeeper`) and the
 * handler that was told to stop has stopped. Else the next one would begin beside it.
 */
function storeLeaseMs({ ownMs, graceMs }: SlotLease): number {
  return Math.ceil(ownMs * 1.1) + graceMs
}

function slotKeeper(
  { queue, slots, clock, logger, lease }: ConcurrencyLimiterOptions,
  pool: string,
  leaseMs: number,
): LeaseKeeper<HeldSlot> {
  const warn = queueWarning({ queue, logger })
  const renew = async (batch: readonly HeldSlot[]): Promise<readonly Settled[]> => {
    const renewed = await slots.renew(pool, batch, leaseMs)
    return renewed.map((isOurs) => (isOurs ? settled : GONE))
  }
  return leaseKeeper({
    renew: lease && renew,
    clock,
    leaseMs: lease?.ownMs ?? leaseMs,
    onError: (error) => warn('its slots cannot be renewed', error),
  })
}

const GONE: Settled = {
  ok: false,
  fault: { code: 'lost', retryable: false, outcome: 'notApplied' },
}

function runSlot(
  { slot, askedAt }: Extract<SlotFound, { as: 'held' }>,
  keeper: LeaseKeeper<HeldSlot>,
  giveBack: (slot: HeldSlot, ranMs: number | undefined) => void,
): RunSlot {
  let isLost = false
  let told: (() => void) | undefined
  const lose = (): void => {
    isLost = true
    told?.()
  }
  // From before it was asked for: the store's time began later.
  keeper.hold(slot, lose, askedAt)
  return {
    isOver: () => isLost || keeper.isOver(slot),
    whenLost: (tell) => {
      told = tell
      if (isLost) tell()
    },
    release: (ranMs) => {
      keeper.letGo(slot)
      giveBack(slot, ranMs)
    },
  }
}
