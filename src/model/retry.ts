import type { Classification } from './classify.ts'
import type { AttemptHistory, ErrorClass } from './history.ts'

/** The part of a queue's retry options that decides when and how often. */
export interface RetryLimits {
  /** Counted runs, then dead. */
  readonly attempts: number
  readonly baseMs: number
  readonly maxMs: number
}

/** What becomes of a message whose run failed. */
export type FailureDecision =
  | { readonly as: 'released'; readonly delayMs: number; readonly counted: boolean }
  | DeadDecision

export interface DeadDecision {
  readonly as: 'dead'
  readonly errorClass: ErrorClass
  /** One line for people: what happened, and the rule that decided. */
  readonly reason: string
}

const DAY_MS = 86_400_000

/** The longest wait that another system may ask for, and how long a message may stay throttled. */
export const THROTTLE_LIMIT_MS: number = DAY_MS

/** A message that killed this many workers is not given to another one. */
const CRASH_LIMIT = 3

const CRASHED_LAST =
  ', the last one by the death of its worker (it vanished with the message in its hands)'

const JITTER = 0.1

/** The ceiling of the backoff after the k-th failed attempt (first k = 1): `min(maxMs, baseMs * 2^(k-1))`. */
export function backoffCeilingMs(k: number, retry: RetryLimits): number {
  const exponent = k >= 1 ? k - 1 : 0
  const grown = retry.baseMs * 2 ** exponent
  // 0 * Infinity is NaN; the options refuse a base of 0, this function stays total all the same.
  return Number.isNaN(grown) ? 0 : Math.max(0, Math.min(retry.maxMs, grown))
}

/** The wait after the k-th failed attempt: `floor(random() * min(maxMs, baseMs * 2^(k-1)))`. */
export function backoffMs(k: number, retry: RetryLimits, random: () => number): number {
  return Math.floor(unit(random) * backoffCeilingMs(k, retry))
}

/**
 * The wait of a throttled message: what the other side asked for, at most 24 h, plus up to 10 % jitter, never earlier.
 * Told nothing, zero, or a number that is no finite wait: the backoff for k = 1.
 */
export function throttleDelayMs(
  toldMs: number | undefined,
  retry: RetryLimits,
  random: () => number,
): number {
  const told = usableDelayMs(toldMs)
  if (told === undefined || told === 0) return backoffMs(1, retry, random)
  const waitMs = Math.min(Math.ceil(told), THROTTLE_LIMIT_MS)
  return waitMs + Math.floor(unit(random) * waitMs * JITTER)
}

export interface Failure {
  readonly classification: Classification
  readonly history: AttemptHistory
  readonly retry: RetryLimits
  /** Epoch ms. */
  readonly now: number
  readonly random: () => number
}

/** Decides what becomes of a failed run; `history` is the one before this failure. */
export function afterFailure(failure: Failure): FailureDecision {
  const { classification } = failure
  switch (classification.errorClass) {
    case 'permanent':
      return {
        as: 'dead',
        errorClass: 'permanent',
        reason: `permanent: ${classification.code}`,
      }
    case 'throttled':
      return afterThrottle(failure)
    case 'transient':
      return afterTransient(failure)
  }
}

function afterTransient({ classification, history, retry, random }: Failure): FailureDecision {
  const attempt = history.counted + 1
  if (attempt >= retry.attempts) {
    const reason = `attempt ${attempt} of ${retry.attempts} failed: ${classification.code}`
    return { as: 'dead', errorClass: 'transient', reason }
  }
  const asked = usableDelayMs(classification.delayMs)
  const delayMs =
    asked === undefined
      ? backoffMs(attempt, retry, random)
      : Math.min(Math.ceil(asked), retry.maxMs)
  return { as: 'released', delayMs, counted: true }
}

function afterThrottle({ classification, history, retry, now, random }: Failure): FailureDecision {
  const since = history.throttledSince ?? now
  if (now - since > THROTTLE_LIMIT_MS) {
    const reason = `throttled for more than 24 h: ${classification.code}`
    return { as: 'dead', errorClass: 'throttled', reason }
  }
  const delayMs = throttleDelayMs(classification.delayMs, retry, random)
  return { as: 'released', delayMs, counted: false }
}

/** Asked before a message is run: dead when its history alone forbids another run, else undefined. */
export function beforeRun(
  history: AttemptHistory,
  retry: Pick<RetryLimits, 'attempts'>,
): DeadDecision | undefined {
  if (history.crashes >= CRASH_LIMIT) {
    const reason = `${history.crashes} workers vanished with this message in their hands`
    return { as: 'dead', errorClass: 'crashed', reason }
  }
  if (history.counted < retry.attempts) return undefined
  // Usually the last counted run was a crash. It was not when `attempts` was lowered by a deploy.
  const last = history.records.findLast((record) => record.errorClass !== 'throttled')
  const died = last?.errorClass === 'crashed' ? CRASHED_LAST : ''
  const reason = `${history.counted} of ${retry.attempts} attempts were used up before this run${died}`
  return { as: 'dead', errorClass: last?.errorClass ?? 'crashed', reason }
}

/**
 * An upper bound for the time between the first run of a message and its last: every retry waits the longest that it
 * may (`TransientError.delayMs` reaches `maxMs` at once), and the message is throttled for as long as it may be.
 */
export function retryHorizonMs(retry: RetryLimits): number {
  const retriesMs = Math.max(0, retry.attempts - 1) * retry.maxMs
  // Told nothing, a throttled message waits the first backoff, which may be longer than a day.
  const lastThrottleMs = Math.max(THROTTLE_LIMIT_MS * (1 + JITTER), backoffCeilingMs(1, retry))
  return retriesMs + THROTTLE_LIMIT_MS + lastThrottleMs
}

export interface RetryStep {
  /** The failed attempt after which this wait comes. */
  readonly attempt: number
  readonly maxDelayMs: number
  /** All waits up to this one, each at its longest. */
  readonly totalMaxMs: number
}

/** The waits of a queue in numbers, for people. The last attempt has none: it ends in the dead letters. */
export function retrySchedule(retry: RetryLimits): readonly RetryStep[] {
  const steps: RetryStep[] = []
  let totalMaxMs = 0
  for (let attempt = 1; attempt < retry.attempts; attempt++) {
    const maxDelayMs = backoffCeilingMs(attempt, retry)
    totalMaxMs += maxDelayMs
    steps.push({ attempt, maxDelayMs, totalMaxMs })
  }
  return steps
}

/** A delay that a user or another system named: finite and not negative, else it is ignored. */
export function usableDelayMs(ms: unknown): number | undefined {
  return typeof ms === 'number' && Number.isFinite(ms) && ms >= 0 ? ms : undefined
}

/** A broken generator must not make a tight loop: out of range is clamped, NaN counts as 1. */
function unit(random: () => number): number {
  const n = random()
  return Number.isNaN(n) ? 1 : Math.min(1, Math.max(0, n))
}
