import { type Clock, pause } from '../model/clock.ts'
import type { Sent } from '../model/delivery.ts'
import { MillraceError } from '../model/errors.ts'
import { lineWaiter } from './line-waiter.ts'

/**
 * Sends of an app whose key a transaction of somebody's holds. Two at a time wait for its end at the backend, each with a connection, the
 * others here: however many there are, the rest of the pool is free for everything else.
 */
export interface HeldLine {
  readonly isEmpty: boolean
  /** Somebody waits for this key: who comes next is behind. */
  has(key: string): boolean
  /** The answer of a try that was not held. Rejects with `late()` when all were, and when too many wait. */
  enter(entry: HeldEntry): Promise<readonly Sent[]>
  /** A sentence when somebody has waited for long. */
  problems(): readonly string[]
}

export interface HeldEntry {
  readonly queue: string
  /** Those of one key are tried in the order in which they came, and one at a time. */
  readonly key: string
  /** Waits at the backend, at most this long. */
  readonly alone: (lockMs: number) => Promise<readonly Sent[]>
  /** The first of its key got through: the usual way, with all others. */
  readonly together: () => Promise<readonly Sent[]>
  /** What the caller is told when it waited in vain. */
  readonly late: () => Error
  readonly signal: AbortSignal | undefined
}

export interface HeldLineOptions {
  readonly clock: Clock
  /** Fires when the app is closed: all give up with MILLRACE_CLOSED. */
  readonly closed: AbortSignal
}

/** Each holds a connection of the backend's pool (of 10 on Postgres, unless the pool is the user's). */
const SIDE_BY_SIDE = 2
/** A try lasts this long while nobody else waits for a turn, as then the key is ours in the moment in which it is free. */
const TURN_MS = 1_000
/** With others in line: all of 400 keys get a turn within the time that a send waits. */
const TURN_AMONG_OTHERS_MS = 100
/** A backend that answers at once is not asked again at once. */
const TURN_MIN_MS = 50
/** Less than a statement may take (30 s), so that the reason is told and not its symptom. */
const WAIT_MS = 20_000
/** Each keeps its payload in memory. */
const LENGTH_MAX = 10_000
/** Longer than a transaction should be open that sends. */
const LONG_MS = 5_000

export function isHeld(sent: Sent | undefined): boolean {
  return sent?.ok === false && sent.fault.code === 'held'
}

interface Waiting {
  readonly since: number
  /** True when it has left the line. */
  readonly tries: (how: How) => Promise<boolean>
}

type How = 'together' | { readonly lockMs: number }

/** Those that wait for one key, the first first. */
interface Group {
  readonly queue: string
  readonly key: string
  readonly waiting: Set<Waiting>
}

class StillHeld extends Error {}

export function heldLine({ clock, closed }: HeldLineOptions): HeldLine {
  const groups = new Map<string, Group>()
  /** Whose turn it is next. */
  const turns: Group[] = []
  let length = 0
  let busy = 0

  const turnOf = async (group: Group): Promise<void> => {
    const startedAt = clock.now()
    const lockMs = turns.length === 0 ? TURN_MS : TURN_AMONG_OTHERS_MS
    const [first] = group.waiting
    if (await first?.tries({ lockMs })) {
      await Promise.all([...group.waiting].map((one) => one.tries('together')))
    } else {
      await pause(clock, TURN_MIN_MS - (clock.now() - startedAt), closed)
    }
    if (group.waiting.size > 0) turns.push(group)
    else groups.delete(group.key)
  }

  const serve = async (): Promise<void> => {
    busy += 1
    for (let group = turns.shift(); group !== undefined; group = turns.shift()) await turnOf(group)
    busy -= 1
  }

  const join = ({ queue, key }: HeldEntry): Group => {
    const known = groups.get(key)
    if (known !== undefined) return known
    const group: Group = { queue, key, waiting: new Set() }
    groups.set(key, group)
    turns.push(group)
    return group
  }

  return {
    get isEmpty() {
      return groups.size === 0
    },
    has: (key) => groups.has(key),
    enter: (entry) => {
      if (closed.aborted) return Promise.reject(closedError(entry.queue))
      if (length >= LENGTH_MAX) return Promise.reject(entry.late())
      const group = join(entry)
      let how: How = 'together'
      const attempt = async (): Promise<readonly Sent[]> => {
        const sent = await (how === 'together' ? entry.together() : entry.alone(how.lockMs))
        if (sent.some(isHeld)) throw new StillHeld()
        return sent
      }
      const { waiter, ended } = lineWaiter(attempt, {
        ...{ clock, closed, late: entry.late, signal: entry.signal },
        waitMs: WAIT_MS,
        isNotYet: (error) => error instanceof StillHeld,
        closedError: () => closedError(entry.queue),
        leave: () => {
          group.waiting.delete(waiting)
          length -= 1
        },
      })
      const waiting: Waiting = {
        since: clock.now(),
        tries: (given) => {
          how = given
          return waiter.tries()
        },
      }
      group.waiting.add(waiting)
      length += 1
      if (busy < SIDE_BY_SIDE && turns.length > 0) void serve()
      return ended
    },
    problems: () => problemsOf([...groups.values()], length, clock.now()),
  }
}

function problemsOf(groups: readonly Group[], length: number, now: number): readonly string[] {
  const oldest = groups
    .flatMap(({ queue, waiting }) =>
      [...waiting].slice(0, 1).map(({ since }) => ({ queue, since })),
    )
    .sort((a, b) => a.since - b.since)[0]
  if (oldest === undefined || now - oldest.since < LONG_MS) return []
  const forS = Math.round((now - oldest.since) / 1_000)
  return [
    `queue "${oldest.queue}": ${length === 1 ? 'a send waits' : `${length} sends wait`} for a key that an open transaction holds, ` +
      `the first for ${forS} s; look for a transaction that sent with it and was left open`,
  ]
}

function closedError(queue: string): MillraceError {
  return new MillraceError(
    'MILLRACE_CLOSED',
    `queue "${queue}": the app was closed while this send waited for a key that an open transaction holds; nothing was stored`,
    { fields: { queue } },
  )
}
