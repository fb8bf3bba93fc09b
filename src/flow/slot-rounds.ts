import { type Cancel, type Clock, pause } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import { isRefusedCall } from '../store/refused-call.ts'
import type { HeldSlot, SlotLimits, Slots } from '../store/slots.ts'
import { holderOf } from './holder.ts'
import { queueWarning } from './queue-warning.ts'
import { type SlotAsk, type SlotFound, type SlotReply, slotAsks } from './slot-asks.ts'

/** Asks for the slots of one queue and gives them back, one call for all that want something at the time. */
export interface SlotRounds {
  /** While the pool is full it waits for a bounded time, and is asked for again and again. */
  ask(key: string | undefined): Promise<SlotFound>
  /** At once, so that what waits here or elsewhere may have it; again and again while the store is away. */
  release(slot: HeldSlot): void
  /** How many messages may be taken at once: one after the pool was full, then twice as many with each answer that it was not. */
  appetite(): number
  /** What waits goes back, and nothing waits from now on. */
  stop(): void
  /** After `stop`: when all is given back, however long the store is away. The caller bounds it. */
  settled(): Promise<void>
  /** Gives up once the call under way is over: what is not given back ends by itself. */
  end(): Promise<void>
}

export interface SlotRoundsOptions {
  readonly queue: string
  readonly slots: Slots
  readonly pool: string
  readonly limits: SlotLimits
  readonly leaseMs: number
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
}

/** A slot that is freed in another process is found within the longest of these. */
const POLL_MIN_MS = 25
const POLL_MAX_MS = 500
/** As many as a store takes in one call. */
const BATCH_MAX = 10_000

export function slotRounds(options: SlotRoundsOptions): SlotRounds {
  const { clock, random } = options
  const name = holderOf(random)
  const asks = slotAsks()
  const calls = slotCalls(options)
  const released: HeldSlot[] = []
  let asked = 0
  let due = false
  let closing = false
  let running: Promise<void> | undefined
  let appetite = BATCH_MAX
  let pollMs = POLL_MIN_MS
  let cancel: Cancel | undefined

  const slower = (): number => Math.min(POLL_MAX_MS, pollMs * 2)

  const take = async (): Promise<void> => {
    const batch = asks.take(BATCH_MAX)
    const askedAt = clock.now()
    const answers = await calls.acquire(batch)
    const isNews = asks.tell(batch, answers, { askedAt, now: clock.now() })
    const isFull = batch.some((_, i) => isFullPool(answers[i]))
    appetite = isFull ? 1 : Math.min(BATCH_MAX, appetite * 2)
    pollMs = isNews ? POLL_MIN_MS : slower()
  }

  const giveBack = async (): Promise<void> => {
    const batch = released.splice(0, BATCH_MAX)
    if (await calls.release(batch)) return
    if (!closing) released.push(...batch)
    pollMs = slower()
  }

  const rounds = async (): Promise<void> => {
    // What the same turn asks for is in the same call.
    await undefined
    while (due) {
      due = false
      if (released.length > 0) await giveBack()
      if (asks.some) await take()
    }
  }

  const wake = (): void => {
    due = true
    cancel?.()
    running ??= rounds().finally(() => {
      running = undefined
      if (due) wake()
      else if (asks.some || released.length > 0)
        cancel = clock.after(pollMs * (0.5 + random() / 2), wake)
    })
  }

  return {
    ask(key) {
      asked += 1
      const found = asks.add({ holder: `${name}:${asked}`, key }, clock.now())
      wake()
      return found
    },
    release(slot) {
      released.push(slot)
      wake()
    },
    appetite: () => appetite,
    stop: asks.stop,
    async settled() {
      while (!closing && (running !== undefined || released.length > 0))
        await (running ?? pause(clock, POLL_MIN_MS))
    },
    async end() {
      while (running !== undefined) await running
      closing = true
      cancel?.()
    },
  }
}

/** Also when nobody could say. */
function isFullPool(answer: SlotReply | undefined): boolean {
  return answer === undefined || (answer.as === 'full' && answer.of === 'pool')
}

interface SlotCalls {
  /** In the order of the batch; undefined where nobody could say. */
  acquire(batch: readonly SlotAsk[]): Promise<readonly (SlotReply | undefined)[]>
  /** False: they may be held still. */
  release(batch: readonly HeldSlot[]): Promise<boolean>
}

/** Of a store that may be away: said once, until it is back. */
function slotCalls(options: SlotRoundsOptions): SlotCalls {
  const { slots, pool, limits, leaseMs } = options
  const warn = queueWarning(options)
  let failing = false
  const failed = (what: string, error: unknown): void => {
    if (!failing) warn(what, error)
    failing = true
  }
  const acquire: SlotCalls['acquire'] = async (batch) => {
    try {
      const answers = await slots.acquire(pool, limits, batch, leaseMs)
      failing = false
      return answers
    } catch (error) {
      if (isRefusedCall(error)) return await without(batch, error)
      failed('its slots (concurrencyLimit) cannot be counted; its messages wait', error)
      return batch.map(() => undefined)
    }
  }
  /** One of them is what no store takes, and must not keep the others: which one, halves tell. */
  const without = async (
    batch: readonly SlotAsk[],
    cause: unknown,
  ): Promise<readonly (SlotReply | undefined)[]> => {
    if (batch.length === 1) return [{ as: 'refused', cause }]
    const middle = batch.length >> 1
    const first = await acquire(batch.slice(0, middle))
    return [...first, ...(await acquire(batch.slice(middle)))]
  }
  return {
    acquire,
    async release(batch) {
      try {
        await slots.release(pool, batch)
        failing = false
        return true
      } catch (error) {
        failed('its slots (concurrencyLimit) cannot be given back now', error)
        // Asked again it would say the same: they end with their lease.
        return isRefusedCall(error)
      }
    },
  }
}
