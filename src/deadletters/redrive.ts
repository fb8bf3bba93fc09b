import { type Clock, pause } from '../model/clock.ts'
import type { ErrorClass } from '../model/history.ts'
import type { AuditNote, Shelf } from '../transport/transport.ts'

/**
 * Waits for its turn among those that wait for room. `attempt` answers undefined while there is none; the answer is that of the attempt,
 * or undefined when it waited in vain or the signal fired.
 */
export type RoomTurn = <T>(
  attempt: () => Promise<T | undefined>,
  signal: AbortSignal | undefined,
) => Promise<T | undefined>

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
  /**
   * The dead letters that halt their ordering keys. They go back to the front of their keys without room: what fills the queue may
   * wait behind them, and leaves only when they have gone.
   */
  readonly halting: () => Promise<ReadonlySet<string>>
  /** The line of the sends that wait for room, where the queue has one: beside them who only looks now and then finds none. */
  readonly turn: RoomTurn | undefined
  readonly onStep: (moved: number) => void
  /** It begins to wait for room: once until something moves again. */
  readonly onFull: () => void
}

const STEP_MAX = 500
/** How long a redrive waits before it looks again whether a full queue has room. */
const FULL_WAIT_MIN_MS = 200
const FULL_WAIT_MAX_MS = 10_000
/** It waits so many times as long as a look took: counting a queue of millions is work for a database. */
const WAIT_OF_LOOK = 10

/**
 * Moves these, in their order; answers the ids that moved. In a full queue those that halt their keys go before the others. Ends
 * early when the signal fires.
 */
export async function redriveIds(
  ids: readonly string[],
  options: RedriveOptions,
): Promise<readonly string[]> {
  const { clock, signal, ratePerSecond } = options
  const moved: string[] = []
  let left = ids
  let waits = false
  while (left.length > 0 && signal?.aborted !== true) {
    const startedAt = clock.now()
    let step = await stepNow(left, options)
    if (step === undefined) {
      if (!waits) options.onFull()
      waits = true
      step = await stepInTurn(left, options, clock.now() - startedAt)
    }
    if (step === undefined) continue
    waits = false
    left = without(left, step.ids)
    moved.push(...step.moved)
    options.onStep(step.moved.length)
    if (ratePerSecond !== undefined && left.length > 0) {
      const dueMs = (1000 * step.ids.length) / ratePerSecond
      await pause(clock, Math.max(0, dueMs - (clock.now() - startedAt)), signal)
    }
  }
  return moved
}

interface Step {
  readonly ids: readonly string[]
  readonly moved: readonly string[]
}

/** As many as there is room for; in a full queue those that need none; undefined: it must wait. */
async function stepNow(
  left: readonly string[],
  options: RedriveOptions,
): Promise<Step | undefined> {
  const step = await stepWithRoom(left, options)
  if (step !== undefined) return step
  const halts = await options.halting()
  const ids = halts.size === 0 ? [] : left.filter((id) => halts.has(id))
  return move(ids.slice(0, stepSize(options.ratePerSecond)), options)
}

/** Behind the sends that wait already, where they wait in a line; else a while later. */
async function stepInTurn(
  left: readonly string[],
  options: RedriveOptions,
  lookMs: number,
): Promise<Step | undefined> {
  const { turn, clock, signal } = options
  const step = await turn?.(() => stepWithRoom(left, options), signal)
  const waitMs = Math.max(FULL_WAIT_MIN_MS, Math.min(FULL_WAIT_MAX_MS, WAIT_OF_LOOK * lookMs))
  if (step === undefined) await pause(clock, waitMs, signal)
  return step
}

async function stepWithRoom(
  left: readonly string[],
  options: RedriveOptions,
): Promise<Step | undefined> {
  const room = Math.max(0, await options.room())
  return move(left.slice(0, Math.min(stepSize(options.ratePerSecond), room)), options)
}

async function move(
  ids: readonly string[],
  { shelf, queue, audit }: RedriveOptions,
): Promise<Step | undefined> {
  if (ids.length === 0) return undefined
  return { ids, moved: await shelf.redrive(queue, ids, audit) }
}

/** Most steps are the first ones of what is left, and need no look at all the others. */
function without(left: readonly string[], step: readonly string[]): readonly string[] {
  if (step.every((id, i) => left[i] === id)) return left.slice(step.length)
  const gone = new Set(step)
  return left.filter((id) => !gone.has(id))
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
