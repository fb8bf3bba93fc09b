import type { RoomTurn } from '../deadletters/redrive.ts'
import type { Breakers } from '../flow/breakers.ts'
import type { ConcurrencyLimiter } from '../flow/concurrency-limiter.ts'
import type { Measure } from '../flow/measure.ts'
import type { Clock } from '../model/clock.ts'
import { MillraceError, OptionsError } from '../model/errors.ts'
import type { Logger } from '../model/logger.ts'
import { type HaltedKeys, WHO_HALTS } from '../transport/halted-keys.ts'
import type { StuckRows } from '../transport/stuck-rows.ts'
import type { Browse, Shelf, Transport } from '../transport/transport.ts'
import type { BackendView, QueueRef } from './admin.ts'
import type { ViewedQueue } from './views.ts'

/** A queue as the administration sees it. */
export interface AdminQueue extends ViewedQueue {
  readonly owner: string
  readonly capacity: { readonly maxDepth: number } | 'unbounded'
}

/** An outbox as the administration sees it. */
export interface AdminOutbox {
  readonly name: string
  readonly stuck?: StuckRows
}

export interface AdminContext {
  readonly transport: Transport
  readonly backend: () => BackendView
  readonly clock: Clock
  readonly logger: Logger
  readonly outbox: AdminOutbox | undefined
  /** @throws MILLRACE_UNKNOWN_QUEUE */
  readonly find: (queue: QueueRef) => AdminQueue
  /** How long the inbox remembers a key, in ms; undefined without an inbox. */
  readonly inboxTtlMs: number | undefined
  /** How long handlers took lately: in all processes (with a store), and in this one. */
  readonly measureOf: (queue: string) => Promise<{
    readonly fleet: Measure | undefined
    readonly own: Measure | undefined
  }>
  /** Lets consumers go on that their kill switch stopped; false when there is none that could be reached. */
  readonly resumed: (queue: string) => Promise<boolean>
  /** The line of the sends that wait for room in it; undefined where they do not wait. */
  readonly turnOf: (queue: string) => RoomTurn | undefined
  /** Undefined when the queue names no downstream. */
  readonly breakersOf: (queue: string) => Breakers | undefined
  /** Undefined when the queue has no concurrencyLimit. */
  readonly limitsOf: (queue: string) => ConcurrencyLimiter | undefined
  /** What the store threw, as an error of ours. */
  readonly storeFault: (cause: unknown) => unknown
  /** Handlers side by side at most in a worker of this queue. */
  readonly concurrencyOf: (queue: string) => number
  /** Fires when the app ends. */
  readonly closed: AbortSignal
}

export function browseOf(transport: Transport): Browse {
  if (transport.browse !== undefined) return transport.browse
  throw cannot(transport, 'be browsed')
}

/** One act of `browse`; not every backend has each. */
export function browseAct<Act extends keyof typeof ACTS>(
  transport: Transport,
  act: Act,
): NonNullable<Browse[Act]> {
  const found = transport.browse?.[act]
  if (found !== undefined) return found
  throw cannot(transport, ACTS[act].what, ACTS[act].instead)
}

const ACTS = {
  get: {
    what: 'show a message by its id while it waits',
    instead: 'a broker hands messages out in their turn; only dead letters are found by id there',
  },
  cancel: {
    what: 'cancel a message by its id',
    instead: 'let the handler decide, or use a database or Redis as the transport',
  },
  purge: {
    what: 'throw away what waits in a queue',
    instead: "use the broker's own tools while no worker runs",
  },
  setPaused: { what: 'pause a queue', instead: 'give createMillrace a store' },
} as const

export function shelfOf(transport: Transport): Shelf {
  if (transport.shelf !== undefined) return transport.shelf
  throw cannot(transport, 'list dead letters')
}

export function haltedKeysOf(transport: Transport): HaltedKeys {
  if (transport.haltedKeys !== undefined) return transport.haltedKeys
  throw new OptionsError('halted keys', [
    `${transport.name} keeps no ordering keys that stand still (onDead: 'halt-key'), so there is none to list, resume or skip; that takes ${WHO_HALTS}`,
  ])
}

export function stuckOf(outbox: AdminOutbox | undefined): StuckRows {
  if (outbox?.stuck !== undefined) return outbox.stuck
  const what = outbox === undefined ? 'this app has none' : `outbox ${outbox.name} lists no rows`
  throw new OptionsError('outbox', [
    `${what}; give createMillrace postgresOutbox or sqliteOutbox, whose relay may be stuck`,
  ])
}

function cannot(
  transport: Transport,
  what: string,
  instead = 'use a transport or a store that can',
): MillraceError {
  return new MillraceError(
    'MILLRACE_BACKEND_FAULT',
    `transport ${transport.name} cannot ${what}; ${instead}`,
  )
}
