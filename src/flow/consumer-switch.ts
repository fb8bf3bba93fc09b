import type { Clock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import { hasCode } from '../model/errors.ts'
import type { Logger } from '../model/logger.ts'
import type { Store } from '../store/store.ts'
import { deathsSeen } from './deaths-seen.ts'
import {
  type KillSwitchEvent,
  type KillSwitchSettings,
  killSwitchAfter,
  killSwitchAt,
  killSwitchSlots,
  RUNNING,
} from './kill-switch.ts'

/** The kill switch of one consumer: of one queue in this process. */
export interface ConsumerSwitch {
  slots(most: number): number
  /** `at`: when it happened, epoch ms. */
  note(event: KillSwitchEvent, at: number): void
  /** A message came back from a worker that died; it was missed at `at`, by the store's clock. */
  died(at: number, now: number): void
  /** Goes on now, as if nothing had been. False when it was running. */
  reset(): boolean
  problem(): string | undefined
  start(onChange: () => void): void
  close(): void
}

export interface ConsumerSwitchOptions {
  readonly queue: string
  readonly settings: KillSwitchSettings
  readonly clock: Clock
  readonly logger: Logger
  /** Brings resets of other processes. */
  readonly store: Pick<Store, 'states'> | undefined
}

/** How often a stopped one asks whether somebody let it go on. */
const ASK_EVERY_MS = 5_000

export function consumerSwitch(options: ConsumerSwitchOptions): ConsumerSwitch {
  const { queue, settings, clock, logger } = options
  let state = RUNNING
  let changed: () => void = () => undefined
  let cancel: (() => void) | undefined
  let closed = false
  const isNewDeath = deathsSeen(settings.windowMs)
  /** The last one that it heard of, in this stop or an earlier one: none lets it go on twice, whatever its time says. */
  let heard: bigint | undefined

  const problem = (): string | undefined => {
    if (state.phase !== 'stopped' || state.stop === undefined) return undefined
    const { kind, failures, runs, until } = state.stop
    return (
      `queue "${queue}": its consumer here is stopped by the kill switch: ${failures} of ${runs} runs failed alike (${kind}); ` +
      `it tries again at ${new Date(until).toISOString()}, or when the queue is resumed`
    )
  }

  const watch = async (since: bigint | undefined): Promise<void> => {
    if (closed || state.phase !== 'stopped') return
    const before = state
    state = killSwitchAt(state, clock.now())
    if (state !== before) {
      logger.warn(`queue "${queue}": its consumer tries one message, after the kill switch`, {
        queue,
      })
      return changed()
    }
    const found = await resetsOf(options)
    if (closed || state !== before) return
    const isOver = found !== undefined && isSince(found, since, before.stop?.at ?? 0, heard)
    const next = found?.version ?? since
    heard = found?.version ?? heard
    if (isOver) return void reset()
    const leftMs = (state.stop?.until ?? 0) - clock.now()
    cancel = clock.after(Math.max(1, Math.min(leftMs, ASK_EVERY_MS)), () => void watch(next))
  }

  const reset = (): boolean => {
    if (state.phase === 'running') return false
    state = RUNNING
    cancel?.()
    logger.warn(`queue "${queue}": its consumer goes on, it was resumed by hand`, { queue })
    changed()
    return true
  }

  const note: ConsumerSwitch['note'] = (event, at) => {
    const { phase } = state
    state = killSwitchAfter(state, event, at, settings)
    if (state.phase === phase) return
    const why = problem()
    if (why !== undefined) logger.error(why, { queue, kind: state.stop?.kind })
    else logger.info(`queue "${queue}": its consumer works again`, { queue })
    if (state.phase === 'stopped') void watch(undefined)
    changed()
  }

  return {
    slots: (most) => killSwitchSlots(state, most),
    note,
    died: (at, now) => {
      // Noted as of now: by another clock, or long after it, it would push out of the window what is in it.
      if (isNewDeath(at, now)) note({ as: 'failed', kind: 'crashed' }, now)
    },
    reset,
    problem,
    start: (onChange) => {
      changed = onChange
    },
    close: () => {
      closed = true
      cancel?.()
    },
  }
}

interface Resets {
  /** Grows with each. */
  readonly version: bigint
  /** Of the last one, epoch ms by the clock of who wrote it; NaN where nobody did, or wrote no time. */
  readonly at: number
}

const NEVER: Resets = { version: 0n, at: Number.NaN }

/**
 * Whether somebody reset it since it stopped. What was there at an earlier look of this stop tells it for sure. Without one (the
 * store was away, or answers just now) times do, which machines may differ in.
 */
function isSince(
  found: Resets,
  since: bigint | undefined,
  stoppedAt: number,
  heard: bigint | undefined,
): boolean {
  if (since !== undefined) return found.version > since
  return found.version !== heard && found.at >= stoppedAt
}

/** Undefined when nobody can say. */
async function resetsOf(options: ConsumerSwitchOptions): Promise<Resets | undefined> {
  const { queue, store, logger } = options
  if (store === undefined) return undefined
  try {
    const found = await store.states.read(resetName(queue))
    return found === undefined ? NEVER : { version: found.version, at: Number(found.value) }
  } catch (error) {
    logger.debug(`queue "${queue}": resets are not known (${messageOfError(error)})`, { queue })
    return hasNoTables(error) ? NEVER : undefined
  }
}

/** Then nobody can have written anything: whatever is there once they are made is newer. */
function hasNoTables(error: unknown): boolean {
  return hasCode(error, 'MILLRACE_SCHEMA_OUTDATED') && error.fields.found === 0
}

function resetName(queue: string): string {
  return `flow:reset:${queue}`
}

/** Lets the stopped consumers of all processes go on within five seconds. `at`: now, epoch ms. */
export async function resetEverywhere(
  store: Pick<Store, 'states'>,
  queue: string,
  at: number,
): Promise<void> {
  const name = resetName(queue)
  const found = await store.states.read(name)
  // Nothing but resets is written there: where somebody else was faster, his reset does as well.
  await store.states.swap(name, found?.version, String(at))
}
