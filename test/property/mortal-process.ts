import type { Slots } from 'millrace/store'
import type { virtualClock } from 'millrace/testing'
import type { Clock } from '../../src/model/clock.ts'

/** A process that can be stopped and killed on a virtual clock: nothing of it goes on then, and its timers fire late when it does again. */
export interface MortalProcess {
  readonly clock: Clock
  /** Resolves while it runs. */
  alive(): Promise<void> | undefined
  stop(): void
  go(): void
  kill(): void
}

export function mortalProcess(clock: ReturnType<typeof virtualClock>): MortalProcess {
  let state: 'runs' | 'stopped' | 'dead' = 'runs'
  let overdue: (() => void)[] = []
  let resumed = Promise.withResolvers<void>()
  return {
    clock: {
      now: () => clock.now(),
      after(ms, fire) {
        let cancelled = false
        const due = (): void => {
          if (!cancelled) fire()
        }
        const cancel = clock.after(ms, () => {
          if (state === 'runs') due()
          else overdue.push(due)
        })
        return () => {
          cancelled = true
          cancel()
        }
      },
    },
    alive: () => (state === 'runs' ? undefined : resumed.promise),
    stop() {
      if (state === 'runs') state = 'stopped'
    },
    go() {
      if (state !== 'stopped') return
      state = 'runs'
      const late = overdue
      overdue = []
      for (const fire of late) fire()
      resumed.resolve()
      resumed = Promise.withResolvers()
    },
    kill() {
      state = 'dead'
    },
  }
}

/** A store as that process reaches it: calls and answers wait for the process, and fail while the store is away. */
export function slotsFor(process: MortalProcess, slots: Slots, isAway: () => boolean): Slots {
  const asked = async <T>(call: () => Promise<T>): Promise<T> => {
    await process.alive()
    if (isAway()) throw new Error('connection refused')
    const answer = await call()
    await process.alive()
    return answer
  }
  return {
    acquire: (...given) => asked(() => slots.acquire(...given)),
    renew: (...given) => asked(() => slots.renew(...given)),
    release: (...given) => asked(() => slots.release(...given)),
    count: (...given) => asked(() => slots.count(...given)),
  }
}
