import type { Classification } from '../model/classify.ts'
import { classifyError } from '../model/classify-error.ts'
import { freshHistory } from '../model/history.ts'
import { afterFailure, type FailureDecision, type RetryLimits } from '../model/retry.ts'
import type { AnyQueue } from '../runtime/queue.ts'
import { formatDuration } from './duration.ts'
import type { GivenError } from './error-from-text.ts'
import { oneLine } from './terminal-text.ts'

/** What Millrace would do with an error, decided by the functions that run in a worker. */
export interface Explanation extends Classification {
  readonly readAs: string
  /** Whose retry options were used; null: the defaults. */
  readonly queue: string | null
  readonly retry: RetryLimits
  /** What follows each failed attempt, first to last. A throttled one repeats without end (24 h). */
  readonly then: readonly Step[]
}

export interface Step {
  readonly attempt: number
  readonly becomes: 'released' | 'dead'
  readonly counted: boolean
  /** The wait, with the luckiest and the unluckiest jitter; absent when dead. */
  readonly minDelayMs?: number
  readonly maxDelayMs?: number
}

const DEFAULTS: RetryLimits = { attempts: 8, baseMs: 1_000, maxMs: 3_600_000 }
/** Of a long schedule the first steps say it all. */
const STEPS_MAX = 20

export function explain(
  { error, readAs }: GivenError,
  queue: AnyQueue | undefined,
  now: number,
): Explanation {
  const classification = classifyError(error, queue?.classify, now)
  const { attempts, baseMs, maxMs } = queue?.retry ?? DEFAULTS
  const retry = { attempts, baseMs, maxMs }
  const decide = (counted: number, random: () => number): FailureDecision =>
    afterFailure({ classification, history: { ...freshHistory, counted }, retry, now, random })
  const then: Step[] = []
  for (let attempt = 1; attempt <= Math.min(attempts, STEPS_MAX); attempt++) {
    const soonest = decide(attempt - 1, () => 0)
    const latest = decide(attempt - 1, () => 1)
    if (soonest.as === 'dead' || latest.as === 'dead') {
      then.push({ attempt, becomes: 'dead', counted: true })
      break
    }
    const { counted } = latest
    then.push({
      attempt,
      becomes: 'released',
      counted,
      minDelayMs: soonest.delayMs,
      maxDelayMs: latest.delayMs,
    })
    if (!counted) break
  }
  return { readAs, ...classification, queue: queue?.name ?? null, retry, then }
}

export function explanationText(found: Explanation): readonly string[] {
  const { attempts, baseMs, maxMs } = found.retry
  const whose =
    found.queue === null
      ? 'the default retry options'
      : `the retry options of queue "${found.queue}"`
  return [
    `read as  ${oneLine(found.readAs)}`,
    `class    ${found.errorClass}`,
    `code     ${oneLine(found.code)}`,
    `why      ${oneLine(found.why)}`,
    `retry    ${whose}: attempts ${attempts}, base ${formatDuration(baseMs)}, at most ${formatDuration(maxMs)}`,
    '',
    ...found.then.map(stepText),
    ...(found.then.length === STEPS_MAX && attempts > STEPS_MAX
      ? [`… and so on, dead after attempt ${attempts}`]
      : []),
  ]
}

function stepText({ attempt, becomes, counted, minDelayMs, maxDelayMs }: Step): string {
  if (becomes === 'dead') return `after attempt ${attempt}: to the dead letters`
  const wait = waitText(minDelayMs ?? 0, maxDelayMs ?? 0)
  if (counted) return `after attempt ${attempt}: ${wait}`
  return `each time: ${wait}, no attempt is spent; dead when it is throttled for more than 24 h`
}

function waitText(minMs: number, maxMs: number): string {
  const [min, max] = [formatDuration(minMs), formatDuration(maxMs)]
  if (min === max) return `waits ${max}`
  return minMs === 0 ? `waits up to ${max}` : `waits ${min} to ${max}`
}
