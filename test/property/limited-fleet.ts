import assert from 'node:assert/strict'
import type { Store } from 'millrace/store'
import type { virtualClock } from 'millrace/testing'
import {
  type ConcurrencyLimiter,
  concurrencyLimiter,
  type RunSlot,
} from '../../src/flow/concurrency-limiter.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { type MortalProcess, mortalProcess, slotsFor } from './mortal-process.ts'

export const LEASE = { ownMs: 6_000, graceMs: 5_000 }
/** When the store gives a slot away that nobody renewed. */
export const SLOT_ENDS_MS = 11_600
const HANDLERS = 4

export interface Limits {
  readonly max: number | undefined
  readonly maxPerKey: number
}

export interface Message {
  readonly n: number
  readonly key: string
  readonly takesMs: number
}

interface Run {
  readonly key: string
  readonly slot: RunSlot
  readonly process: MortalProcess
  /** Since it began. */
  wasStopped: boolean
}

/** Workers with one limit, a queue that loses nothing, and somebody outside who counts what runs. */
export interface LimitedFleet {
  readonly handled: ReadonlySet<number>
  kill(worker: number): void
  stop(worker: number): void
  go(worker: number): void
  setAway(away: boolean): void
  /** Throws when more run than may. */
  check(): void
  close(): Promise<void>
}

export interface LimitedFleetOptions {
  readonly clock: ReturnType<typeof virtualClock>
  readonly store: Store
  readonly random: () => number
  readonly limits: Limits
  readonly messages: readonly Message[]
  readonly workers: number
}

export function limitedFleet(options: LimitedFleetOptions): LimitedFleet {
  const { clock, limits } = options
  const waiting = [...options.messages]
  const inHand = new Map<Message, MortalProcess>()
  const handled = new Set<number>()
  const runs = new Set<Run>()
  let away = false

  const run = async (message: Message, slot: RunSlot, process: MortalProcess): Promise<void> => {
    const one: Run = { key: message.key, slot, process, wasStopped: false }
    runs.add(one)
    checkRuns(runs, limits)
    const outcome = await outcomeOf(message, slot, process)
    runs.delete(one)
    slot.release()
    inHand.delete(message)
    if (outcome === 'done') handled.add(message.n)
    else waiting.push(message)
  }

  /** As a worker does: takes, asks, runs, gives back. */
  const work = async (process: MortalProcess, limiter: ConcurrencyLimiter): Promise<void> => {
    for (;;) {
      const message = waiting.shift()
      if (message === undefined) {
        await sleep(process, 500)
        continue
      }
      inHand.set(message, process)
      const found = await limiter.ask(message.key)
      if (!('delayMs' in found) && !found.isOver()) {
        await run(message, found, process)
        continue
      }
      if (!('delayMs' in found)) found.release()
      inHand.delete(message)
      waiting.push(message)
      await sleep(process, 'delayMs' in found ? Math.min(found.delayMs, 1_000) : 0)
    }
  }

  const spawn = (): MortalProcess => {
    const process = mortalProcess(clock)
    const limiter = limiterOf(options, process, () => away)
    for (let slot = 0; slot < HANDLERS; slot++) void work(process, limiter)
    return process
  }

  const workers = Array.from({ length: options.workers }, spawn)
  const at = (worker: number): MortalProcess => workers[worker] ?? assert.fail()
  const runsOf = (process: MortalProcess) => [...runs].filter((one) => one.process === process)
  return {
    handled,
    kill(worker) {
      const dead = at(worker)
      dead.kill()
      for (const one of runsOf(dead)) runs.delete(one)
      // The broker finds out, and hands them out again.
      for (const [message, holder] of inHand) {
        if (holder !== dead) continue
        inHand.delete(message)
        waiting.push(message)
      }
      workers[worker] = spawn()
    },
    stop(worker) {
      at(worker).stop()
      for (const one of runsOf(at(worker))) one.wasStopped = true
    },
    go: (worker) => at(worker).go(),
    setAway(now) {
      away = now
    },
    check: () => checkRuns(runs, limits),
    async close() {
      for (const process of workers) process.kill()
    },
  }
}

function limiterOf(
  { store, random, limits }: LimitedFleetOptions,
  process: MortalProcess,
  isAway: () => boolean,
): ConcurrencyLimiter {
  return concurrencyLimiter({
    queue: 'q',
    max: limits.max,
    perKey: { max: limits.maxPerKey, key: String },
    slots: slotsFor(process, store.slots, isAway),
    lease: LEASE,
    clock: process.clock,
    random,
    logger: silentLogger,
  })
}

/** The worst of handlers: told to stop, it does so at the very end of its grace. */
function outcomeOf(
  { takesMs }: Message,
  slot: RunSlot,
  { clock }: MortalProcess,
): Promise<'done' | 'lost'> {
  return new Promise((resolve) => {
    clock.after(takesMs, () => resolve('done'))
    slot.whenLost(() => void clock.after(LEASE.graceMs, () => resolve('lost')))
  })
}

/** Those that have a slot by their own clock; and all that really run, but for those whose process was stopped. */
function checkRuns(runs: ReadonlySet<Run>, { max, maxPerKey }: Limits): void {
  const seen = [...runs]
  for (const counted of [
    seen.filter(({ slot }) => !slot.isOver()),
    seen.filter(({ wasStopped }) => !wasStopped),
  ]) {
    assert.ok(counted.length <= (max ?? runs.size), `${counted.length} of ${max}`)
    for (const key of new Set(counted.map((one) => one.key))) {
      const ofKey = counted.filter((one) => one.key === key).length
      assert.ok(ofKey <= maxPerKey, `${ofKey} of ${maxPerKey} of ${key}`)
    }
  }
}

function sleep({ clock }: MortalProcess, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve))
}
