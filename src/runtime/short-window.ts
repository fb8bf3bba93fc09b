import { retrySchedule } from '../model/retry.ts'
import type { AnyQueue } from './queue.ts'

const DAY_MS = 86_400_000

/**
 * A window in which keys are forgotten while the retries of their first message still go on, as far as these decide it themselves: being
 * throttled may take longer than any window. One sentence, or none; the default is none, for nobody has chosen it.
 */
export function shortWindow(queue: AnyQueue): readonly string[] {
  const { windowMs } = queue.dedupe
  const triedForMs = longestTriedMs(queue)
  const enoughMs = Math.min(DAY_MS, triedForMs)
  if (windowMs >= enoughMs) return []
  return [
    `queue "${queue.name}": dedupe.windowMs is ${windowMs} ms, and a message may be tried for ${triedForMs} ms: an idempotency key that is sent again in between is stored once more, ` +
      `and without an inbox its effect happens twice; give createMillrace an inbox, or a window of ${enoughMs} ms or more`,
  ]
}

function longestTriedMs({ retry, handlerTimeoutMs }: AnyQueue): number {
  const waitsMs = retrySchedule(retry).at(-1)?.totalMaxMs ?? 0
  return waitsMs + retry.attempts * handlerTimeoutMs
}
