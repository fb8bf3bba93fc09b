import type { Clock } from '../model/clock.ts'
import { type Settled, settled } from '../model/delivery.ts'
import { type LeaseKeeper, leaseKeeper } from '../model/lease-keeper.ts'
import type { Logger } from '../model/logger.ts'
import type { HeldSlot, SlotCount, Slots } from '../store/slots.ts'
import { nameGiver } from './name-giver.ts'
import { queueWarning } from './queue-warning.ts'
import { refusedByStore } from './refused-by-store.ts'
import type { SlotFound } from './slot-asks.ts'
import { type SlotRounds, slotRounds } from './slot-rounds.ts'
import { keptTurns } from './turns.ts'

/** How many messages of one queue, and of each key in it, run side by side: in all workers together, or in this process. */
export interface ConcurrencyLimiter {
  /** Of all messages; undefined: no limit but that of each key. */
  readonly max: number | undefined
  readonly maxPerKey: number | undefined
  /** `max` where all workers share it. */
  readonly sharedMax: number | undefined
  /** A slot, or how long the message waits, in ms, given back without blame. While all slots of the queue are taken it waits here. Rejects with a PermanentError for a payload without a key, or with one that the store refuses. */
  ask(payload: unknown): Promise<RunSlot | SlotWait>
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
  release(): void
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
  /** How long handlers took lately, in ms. */
  readonly handlerMs: () => number | undefined
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
/** Twice as many come back as can run: a key must not stand idle because a handler was quick. */
const TURNS_PER_SLOT = 2
const TURN_MIN_MS = 20
const TURN_MAX_MS = 60_000
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
  const turns = keptTurns(clock)
  let firstAskedAt: number | undefined

  /** A key that is full: in a turn of its own, so that not all that wait are turned over for each that may run. */
  const turnOf = (key: string, ofKey: number): number => {
    // Before any has ended it is known that they take no less than until now.
    const handlerMs = options.handlerMs() ?? clock.now() - (firstAskedAt ?? 0)
    const gapMs = handlerMs / ofKey / TURNS_PER_SLOT
    const eachMs = Math.min(TURN_MAX_MS, Math.max(TURN_MIN_MS, gapMs))
    return turns.next(key, eachMs, 1_000 / eachMs)
  }

  const waitOf = (of: 'pool' | 'key', key: string | undefined): number =>
    of === 'key' && key !== undefined && perKey !== undefined ? turnOf(key, perKey.max) : AGAIN_MS

  return {
    ...limits,
    sharedMax: lease && max,
    ask: async (payload) => {
      const key = keyOf?.(payload)
      firstAskedAt ??= clock.now()
      const found = await rounds.ask(key)
      if (found.as === 'refused')
        throw refusedByStore(queue, 'slot (concurrencyLimit)', found.cause)
      if (found.as === 'full') return { delayMs: waitOf(found.of, key) }
      return runSlot(found, keeper, rounds)
    },
    appetite: rounds.appetite,
    count: (keysMax) => options.slots.count(pool, keysMax),
    problem: () =>
      keeper.failingSince === undefined
        ? undefined
        : `queue "${queue}": its slots (concurrencyLimit) cannot be renewed`,
    stop: rounds.stop,
    settled: rounds.settled,
    close: () => {
      rounds.stop()
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
  rounds: SlotRounds,
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
    release: () => {
      keeper.letGo(slot)
      rounds.release(slot)
    },
  }
}
