import type { Clock } from '../model/clock.ts'

/**
 * Whether a server still counts us as alive, as far as our own clock can tell. A process that was stopped runs on before any
 * signal fires, while what it held may be somebody else's.
 */
export interface SignsOfLife {
  /** The server has answered what it was asked at this moment. It heard us then or later, so its own patience began no sooner. */
  answered(askedAt: number): void
  /** Since the last question that was answered. */
  silentMs(): number
  /**
   * The server may have given what we hold to somebody else. Once said it stays so, also when the server answers again:
   * `onOver`, which gives it up here, was called.
   */
  isOver(): boolean
}

export interface SignsOfLifeParts {
  /**
   * The wall clock, which goes on while a machine sleeps; Node's monotonic one stands still then. Set forward it ends what is
   * held once, set back it is believed again with the next answer.
   */
  readonly clock: Pick<Clock, 'now'>
  /** The shortest silence after which the server gives away what we hold. */
  readonly patienceMs: number
  readonly onOver: (silentMs: number) => void
}

/** Of the patience: what is left is for the difference of two clocks, and for the commit behind the look. */
const SURE = 0.9

export function signsOfLife({ clock, patienceMs, onOver }: SignsOfLifeParts): SignsOfLife {
  let aliveAt = clock.now()
  let isOver = false
  const silentMs = (): number => clock.now() - aliveAt
  return {
    answered(askedAt) {
      aliveAt = askedAt
    },
    silentMs,
    isOver() {
      const ms = silentMs()
      if (!isOver && ms >= patienceMs * SURE) {
        isOver = true
        onOver(ms)
      }
      return isOver
    },
  }
}
