/**
 * Priorities with ageing. The ready messages of one priority are a line, and the lines of a queue make one order: a level of
 * priority is worth `ageingMs` of waiting. So a message is overtaken by those of a higher priority only while they became ready less
 * than that for each level after it, and none waits for ever.
 */

/** The first message of a line. */
export interface LineHead {
  readonly priority: number
  /** Epoch ms. */
  readonly readyAt: number
}

/** A minute: the lowest of ten priorities is overtaken by what became ready up to nine minutes after it. */
export const AGEING_MS = 60_000

/** Where a message stands in the one order of its queue; the lowest comes first. */
export function standing({ priority, readyAt }: LineHead, ageingMs: number): number {
  return readyAt - priority * ageingMs
}

/** Whose turn it is. */
export interface LineTurn<Head extends LineHead> {
  readonly head: Head
  /** Messages of this line that became ready by then come before the first one of every other line. */
  readonly untilReadyAt: number
}

/** Of equal standing the higher priority goes first. Undefined when all lines are empty. */
export function lineTurn<Head extends LineHead>(
  heads: readonly Head[],
  ageingMs: number,
): LineTurn<Head> | undefined {
  let first: Head | undefined
  for (const head of heads) {
    if (first === undefined || isBefore(head, first, ageingMs)) first = head
  }
  if (first === undefined) return undefined
  let untilReadyAt = Number.POSITIVE_INFINITY
  for (const rival of heads) {
    if (rival === first) continue
    const lead = (first.priority - rival.priority) * ageingMs
    // Moments are whole ms, so one less is before.
    const until = rival.readyAt + lead - (first.priority >= rival.priority ? 0 : 1)
    untilReadyAt = Math.min(untilReadyAt, until)
  }
  return { head: first, untilReadyAt }
}

function isBefore(a: LineHead, b: LineHead, ageingMs: number): boolean {
  const apart = standing(a, ageingMs) - standing(b, ageingMs)
  return apart < 0 || (apart === 0 && a.priority > b.priority)
}
