import type { Msg } from '@nats-io/transport-node'
import type { Ends } from '../../transport/ends.ts'
import {
  type Arriving,
  arrived,
  giveBack,
  giveBackLate,
  needConsumer,
  RETRY_MS,
  WAIT_MAX_MS,
} from './arriving.ts'
import type { Held } from './held.ts'
import type { Source } from './lane.ts'
import { isPassing, pull } from './pull.ts'

/** The requests for messages of a queue with lanes: at most one waits at each of its consumers. */
export interface Lines {
  /**
   * Asks for more where nobody waits, as long as all that may be answered at once is no more than `room`. Answers when to call it
   * again; Infinity: a request waits everywhere, and nothing came.
   */
  ask(room: number): number
  /** Something has come, and is being read: no receive should end without it. */
  isComing(): boolean
  /** Nobody waits any more; what the server has sent meanwhile goes back. */
  stop(): void
}

/** What comes of the requests. */
export interface LinesEvents {
  readonly came: (held: readonly Held[]) => void
  readonly failed: (error: unknown) => void
  /** Something has changed: look again. */
  readonly changed: () => void
}

/** A request that waits. */
interface Open {
  readonly batch: number
  /** What is there has begun to come by then. Infinity while the server may not have the request yet. */
  answeredAt: number
  /** Something has come, and is being read. */
  isComing: boolean
}

/** A consumer, and the request that waits there. */
interface Line {
  readonly source: Source
  open: Open | undefined
  /** The lowest is asked next. */
  turn: number
  /** Not before this moment is it asked again. */
  askAt: number
}

/** So long after the server has a request it has sent what is there. */
export const ANSWER_MS = 20
/** A lane that had nothing is asked this many turns later than one that had something. */
const EMPTY_TURNS = 8

export function openLines(parts: Arriving, events: LinesEvents): Lines {
  const { clock } = parts.store
  const lines = parts.sources.map(
    (source): Line => ({ source, open: undefined, turn: 0, askAt: 0 }),
  )
  let waiting = new AbortController()
  let turn = 0

  const start = (line: Line, batch: number, askedAt: number): Open => {
    const open: Open = { batch, answeredAt: NEVER, isComing: false }
    const { signal } = waiting
    const onFirst = (): void => {
      open.isComing = true
    }
    turn += 1
    line.open = open
    line.turn = turn
    line.askAt = askedAt + RETRY_MS
    const close = (): void => {
      if (line.open === open) line.open = undefined
    }
    request(parts, { source: line.source, batch, askedAt, signal, onFirst })
      .then(async (held) => {
        close()
        if (signal.aborted) return await giveBack(parts, held)
        if (held.length > 0) line.askAt = 0
        else line.turn += EMPTY_TURNS
        events.came(held)
      })
      .catch((error: unknown) => {
        close()
        if (!signal.aborted) events.failed(error)
      })
      .finally(events.changed)
    return open
  }
  /** The server has what was sent before, however far away it is. */
  const arriving = async (opened: readonly Open[]): Promise<void> => {
    await parts.store.client.nc.flush().catch(() => {})
    const answeredAt = clock.now() + ANSWER_MS
    for (const open of opened) open.answeredAt = answeredAt
    events.changed()
  }

  return {
    ask(room) {
      const now = clock.now()
      let free = room - unanswered(lines, now).reduce((sum, { batch }) => sum + batch, 0)
      const opened: Open[] = []
      const due = lines
        .filter(({ open, askAt }) => open === undefined && askAt <= now)
        .sort((a, b) => a.turn - b.turn)
      for (const [at, line] of due.entries()) {
        if (free <= 0) break
        const others = due.length - 1 - at
        // Of a lane there comes one. What has no key comes in any number, once the lanes have theirs.
        const batch = line.source.lane === undefined ? Math.max(1, free - others) : 1
        opened.push(start(line, batch, now))
        free -= batch
      }
      if (opened.length > 0) void arriving(opened)
      return Math.min(
        ...unanswered(lines, now).map((open) =>
          open.isComing ? now + LOOK_MS : Math.min(open.answeredAt, now + LOOK_MS),
        ),
        ...lines.map(({ open, askAt }) => (open || askAt <= now ? NEVER : askAt)),
      )
    },
    isComing: () => lines.some(({ open }) => open?.isComing === true),
    stop() {
      waiting.abort()
      waiting = new AbortController()
      for (const line of lines) {
        if (line.open !== undefined) line.turn += EMPTY_TURNS
        line.open = undefined
        line.askAt = 0
      }
    },
  }
}

/** While the server has not said that it has a request. */
const LOOK_MS = 100
const NEVER = Number.POSITIVE_INFINITY

/** Those that may still be answered at once. */
function unanswered(lines: readonly Line[], now: number): readonly Open[] {
  return lines.flatMap(({ open }) =>
    open !== undefined && (open.isComing || now < open.answeredAt) ? [open] : [],
  )
}

interface Request {
  readonly source: Source
  readonly batch: number
  readonly askedAt: number
  readonly signal: AbortSignal
  readonly onFirst: () => void
}

async function request(
  parts: Arriving,
  { source, batch, askedAt, signal, onFirst }: Request,
): Promise<readonly Held[]> {
  const { store, ackWaitMs } = parts
  const waitMs = Math.min(WAIT_MAX_MS, ackWaitMs / 2)
  const ends: Ends = { reached: () => signal.aborted, signal: () => signal }
  const late = (msg: Msg): void => void giveBackLate(parts, source, msg, askedAt)
  try {
    const messages = await pull(store, { source, batch, waitMs, ends, late, onFirst })
    return await Promise.all(messages.map((msg) => arrived(parts, source, msg, askedAt)))
  } catch (error) {
    if (!isPassing(error)) throw error
    await store.tracked(needConsumer(parts, source))
    return []
  }
}
