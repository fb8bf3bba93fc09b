import type { HeldSlot, SlotAnswer, SlotRequest } from '../store/slots.ts'

/** Those that want a slot, the oldest first, and what they are told. */
export interface SlotAsks {
  readonly some: boolean
  add(request: SlotRequest, now: number): Promise<SlotFound>
  /** Up to `max`; they are told, or wait again. */
  take(max: number): readonly SlotAsk[]
  /**
   * Those for which the pool is full wait again, but for those that have waited long enough. No answer: nobody could say, or the answer
   * was lost; they wait, too, and ask under the same name, so that none leaks what it may have got. True when somebody was told something.
   */
  tell(
    batch: readonly SlotAsk[],
    answers: readonly (SlotReply | undefined)[],
    times: { readonly askedAt: number; readonly now: number },
  ): boolean
  /** All that wait are told that it is full, and from now on nobody waits. */
  stop(): void
}

export interface SlotAsk extends SlotRequest {
  readonly since: number
  readonly answer: (found: SlotFound) => void
}

/** What the store said of one, or that it took no such call. */
export type SlotReply = SlotAnswer | SlotRefused

export interface SlotRefused {
  readonly as: 'refused'
  readonly cause: unknown
}

export type SlotFound =
  | { readonly as: 'held'; readonly slot: HeldSlot; readonly askedAt: number }
  /** Also when nobody could say for long. */
  | { readonly as: 'full'; readonly of: 'pool' | 'key' }
  | SlotRefused

/** A broker's patience with what it handed out has an end: 30 minutes on RabbitMQ, less elsewhere. */
const WAIT_MAX_MS = 30_000

export function slotAsks(): SlotAsks {
  let waiting: SlotAsk[] = []
  let stopped = false
  return {
    get some() {
      return waiting.length > 0
    },
    add(request, since) {
      const { promise, resolve } = Promise.withResolvers<SlotFound>()
      waiting.push({ ...request, since, answer: resolve })
      return promise
    },
    take: (max) => waiting.splice(0, max),
    tell(batch, answers, { askedAt, now }) {
      const left = batch.filter((one, i) => {
        const answer = answers[i] ?? { as: 'full', of: 'pool' }
        if (answer.as === 'held') {
          one.answer({ as: 'held', slot: { holder: one.holder, fence: answer.fence }, askedAt })
          return false
        }
        const isFull = answer.as === 'full' && answer.of === 'pool'
        const mayWait = isFull && !stopped && now - one.since < WAIT_MAX_MS
        if (!mayWait) one.answer(answer)
        return mayWait
      })
      waiting = [...left, ...waiting]
      return left.length < batch.length
    },
    stop() {
      stopped = true
      for (const one of waiting.splice(0)) one.answer({ as: 'full', of: 'pool' })
    },
  }
}
