import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { Stand } from './backend.ts'
import type { Run } from './campaign.ts'
import { type RedriveKillPoint, recorder } from './recorder.ts'

/** Somebody who redrives what is dead for as long as a campaign goes on. */
export interface Redriving {
  /** Answers who died of something else than a permanent error; by key, why. */
  end(): Promise<ReadonlyMap<string, string>>
}

export interface RedrivingOptions {
  readonly run: Run
  readonly observer: Stand
  readonly recordFile: string
  readonly killAt: RedriveKillPoint | undefined
  readonly deadline: number
}

/** So many are dead before they are redriven, so that a killed redrive leaves some behind. */
const ENOUGH = 10

/** The first redrive dies around its first step; those after it wait for its lease. */
export function redriving(options: RedrivingOptions): Redriving {
  const { run, observer, recordFile, killAt, deadline } = options
  const blamed = new Map<string, string>()
  let isOver = false
  const look = async (): Promise<number> => {
    const { items } = await observer.app.admin.deadLetters.list(observer.victims, { limit: 500 })
    for (const { errorClass, idempotencyKey, reason } of items) {
      if (errorClass !== 'permanent') blamed.set(idempotencyKey, reason)
    }
    return items.length
  }
  const untilDead = async (count: number): Promise<void> => {
    while (!isOver && Date.now() < deadline && (await look()) < count) await wait(200)
  }
  const redrive = async (at = 'never'): Promise<void> => {
    await once(run('redriver.ts', [at]), 'exit')
  }
  const redriveAll = async (): Promise<void> => {
    await untilDead(ENOUGH)
    recorder(recordFile).note({ what: 'mended' })
    await redrive(killAt)
    for (;;) {
      await untilDead(1)
      if (isOver || Date.now() > deadline) return
      await redrive()
    }
  }
  const ended = redriveAll()
  return {
    end: async () => {
      isOver = true
      await ended
      return blamed
    },
  }
}
