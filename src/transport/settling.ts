import type { Dead, Delivery, Released } from '../model/delivery.ts'
import { type AttemptHistory, afterRelease } from '../model/history.ts'

/** What a store keeps of the attempts at a message. */
export type Attempts = Pick<Delivery, 'alone' | 'history'>

export interface GivenBack extends Attempts {
  /** 0 to the longest that the transport can wait. */
  readonly delayMs: number
}

/** What becomes of a message by its release. */
export function givenBack(
  { alone, history }: Attempts,
  release: Omit<Released, 'as' | 'delivery'>,
  maxDelayMs: number,
): GivenBack {
  const { counted, delayMs } = release
  return {
    history: afterRelease(history, release),
    // An uncounted release says nothing about whether the message kills its worker.
    alone: alone && !counted,
    delayMs: Number.isNaN(delayMs) ? 0 : Math.min(Math.max(0, delayMs), maxDelayMs),
  }
}

/** Given back as if it had never been handed out. */
export function untouched(delivery: Delivery): Released {
  return { as: 'released', delivery, delayMs: 0, counted: false }
}

/** Says nothing of an attempt, so there is nothing to write down. */
export function isBare({ counted, attempt }: Pick<Released, 'counted' | 'attempt'>): boolean {
  return !counted && attempt === undefined
}

/** Nothing to write down and nothing to wait for; such a one is never a copy. */
export function isPlain(release: Pick<Released, 'counted' | 'attempt' | 'delayMs'>): boolean {
  return isBare(release) && release.delayMs === 0
}

/** The history that a dead letter keeps. */
export function lastHistory(
  { history }: Pick<Attempts, 'history'>,
  { attempt }: Pick<Dead, 'attempt'>,
): AttemptHistory {
  return attempt ? afterRelease(history, { counted: true, attempt }) : history
}
