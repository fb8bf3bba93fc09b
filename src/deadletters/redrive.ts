import { type Clock, pause } from '../model/clock.ts'
import type { ErrorClass } from '../model/history.ts'
import type { AuditNote, Shelf } from '../transport/transport.ts'

/** Sends dead letters back, in steps that a kill between two of them cannot hurt: each step is one transaction. */
export interface RedriveOptions {
  readonly shelf: Shelf
  readonly queue: string
  readonly clock: Clock
  readonly audit: AuditNote
  readonly ratePerSecond: number | undefined
  readonly signal: AbortSignal | undefined
  /** How many more messages the queue takes now; a redrive waits while it is full. */
  readonly room: () => Promise<number>
  readonly onStep: (moved: number) => void
}

const STEP_MAX = 500
/** How long a redrive waits before it looks again whether a full queue has room. */
const FULL_WAIT_MS = 1_000

/** Moves these, in their order; answers the ids that moved. Ends early when the signal fires. */
export async function redriveIds(
  ids: readonly string[],
  options: RedriveOptions,
): Promise<readonly string[]> {
  const { clock, signal, ratePerSecond } = options
  const moved: string[] = []
  let next = 0
  while (next < ids.length && signal?.aborted !== true) {
    const startedAt = clock.now()
    const room = await options.room()
    if (room <= 0) {
      await pause(clock, FULL_WAIT_MS, signal)
      continue
    }
    const size = Math.min(STEP_MAX, room, stepSize(ratePerSecond))
    const step = ids.slice(next, next + size)
    next += step.length
    const done = await options.shelf.redrive(options.queue, step, options.audit)
    moved.push(...done)
    options.onStep(done.length)
    if (ratePerSecond !== undefined && next < ids.length) {
      const dueMs = (1000 * step.length) / ratePerSecond
      await pause(clock, Math.max(0, dueMs - (clock.now() - startedAt)), signal)
    }
  }
  return moved
}

/** A tenth of a second's worth, so that a rate is smooth and a stop is quick. */
function stepSize(ratePerSecond: number | undefined): number {
  return ratePerSecond === undefined ? STEP_MAX : Math.max(1, Math.floor(ratePerSecond / 10))
}

export interface ShelfSelection {
  readonly errorClass?: ErrorClass
  readonly deadBefore?: number
}

/** Ids of all dead letters that match, oldest page last, with when each was first tried. Read page by page. */
export async function* matching(
  shelf: Shelf,
  queue: string,
  filter: ShelfSelection,
): AsyncGenerator<{ readonly id: string; readonly triedAt: number }> {
  let cursor: string | undefined
  do {
    const page = await shelf.list(queue, {
      ...filter,
      limit: STEP_MAX,
      bodies: false,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const letter of page.items) {
      yield { id: letter.envelope.id, triedAt: letter.history.records[0]?.at ?? letter.deadAt }
    }
    cursor = page.cursor ?? undefined
  } while (cursor !== undefined)
}
