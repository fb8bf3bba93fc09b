import { type Clock, pause } from '../../model/clock.ts'
import type { Logger } from '../../model/logger.ts'
import type { Wire } from '../../redis/wire.ts'

/** Hears from other connections that a queue has news. A hint: receives look by themselves beneath it. */
export interface Ear {
  listens(): boolean
  /** From now on. Never rejects: who cannot listen polls more often. */
  listenTo(channel: string, hear: () => void): Promise<void>
  close(): void
}

export interface EarParts {
  readonly wire: Wire
  readonly clock: Clock
  readonly logger: Logger
}

/** The listening connection is asked for a sign of life this often, and has this long for it. */
const HEARTBEAT_MS = 10_000
const SIGN_WITHIN_MS = 5_000

export const deafEar: Ear = { listens: () => false, listenTo: async () => {}, close() {} }

export function openEar({ wire, clock, logger }: EarParts): Ear {
  const closing = new AbortController()
  const channels = new Map<string, Promise<void>>()
  let deaf = false
  let beating = false

  const beat = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await pause(clock, HEARTBEAT_MS, closing.signal)
      if (closing.signal.aborted) return
      const alive = await inTime(clock, wire.probeEar())
      if (!alive && !closing.signal.aborted) await wire.renewEar().catch(() => {})
    }
  }
  const refused = (error: unknown): void => {
    if (closing.signal.aborted) return
    deaf = true
    logger.warn(
      'cannot listen for news in Redis; receives look every 250 ms instead (the user needs +subscribe and the channels)',
      { error },
    )
  }
  const listen = async (channel: string, hear: () => void): Promise<void> => {
    let isRefused = false
    const listening = wire.listen(channel, hear).catch((error: unknown) => {
      isRefused = true
      refused(error)
    })
    // A server that hangs answers nothing: the beat gives its connection up and takes a new one, and receives poll until then.
    await inTime(clock, listening)
    if (isRefused || beating) return
    beating = true
    void beat()
  }
  return {
    listens: () => !deaf,
    listenTo(channel, hear) {
      const listening = channels.get(channel) ?? listen(channel, hear)
      channels.set(channel, listening)
      return listening
    },
    close: () => closing.abort(),
  }
}

/** Whether it was answered within the time. */
function inTime(clock: Clock, answer: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(SIGN_WITHIN_MS, () => resolve(false))
    const end = (alive: boolean): void => {
      cancel()
      resolve(alive)
    }
    answer.then(
      () => end(true),
      () => end(false),
    )
  })
}
