import type { Failures } from './api.ts'
import { BATCH_MAX } from './traits.ts'

/**
 * Requests of one batch that are under way at once. Below the 50 sockets that a client has by default, so that polls have some
 * left; the fewer, the more each costs (200 µs of CPU a message with 16, 165 with 32, 140 with 64, the SDK alone 114 with 100).
 */
const AT_ONCE = 32

/** What became of each part: the entries that failed, or the error of the whole request. */
export type PartOutcome = { readonly failures: Failures } | { readonly error: unknown }

/** Gives each part to `ask`, several at once unless order counts; an error fails its own part alone. Never rejects. */
export async function askInParts<T>(
  parts: readonly T[],
  ask: (part: T) => Promise<Failures>,
  atOnce: number = AT_ONCE,
): Promise<readonly PartOutcome[]> {
  const outcomes: PartOutcome[] = []
  const left = parts.entries()
  const work = async (): Promise<void> => {
    for (const [at, part] of left) {
      outcomes[at] = await ask(part).then(
        (failures) => ({ failures }),
        (error: unknown) => ({ error }),
      )
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, parts.length) }, work))
  return outcomes
}

/** @throws the first error when every part failed: the server is away */
export function throwIfAllFailed(outcomes: readonly PartOutcome[]): void {
  const [first] = outcomes
  if (first === undefined || !('error' in first)) return
  if (outcomes.every((one) => 'error' in one)) throw first.error
}

export function inTens<T>(all: readonly T[]): readonly (readonly T[])[] {
  const parts: T[][] = []
  for (let at = 0; at < all.length; at += BATCH_MAX) parts.push(all.slice(at, at + BATCH_MAX))
  return parts
}
