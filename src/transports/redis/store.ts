import type { Clock } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import type { Logger } from '../../model/logger.ts'
import type { Bell } from '../../transport/bell.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import type { Traits } from '../../transport/traits.ts'
import type { Ear } from './ear.ts'
import { callError, RedisConnectionError, wordOf } from './fault.ts'
import { type QueueKeys, queueKeys } from './keys.ts'
import { type Script, scripts } from './script.ts'
import type { Args, Reply, Wire } from './wire.ts'

/** One connection with what every part of the transport needs. */
export interface Store {
  readonly wire: Wire
  readonly traits: Traits
  readonly prefix: string
  readonly group: string
  readonly clock: Clock
  readonly logger: Logger
  readonly timeoutMs: number
  readonly pollMs: number | undefined
  /** By queue name. */
  readonly bell: Bell<string>
  readonly ear: Ear
  /** A name that no other claim has. */
  readonly newClaim: () => string
  /** Fires when the transport closes; everything that waits gives up. */
  readonly closing: AbortSignal
  /** Queues that are known to be there. */
  readonly queues: Map<string, QueueKeys>
}

export interface RunOptions {
  readonly keys?: readonly string[]
  readonly bytes?: boolean
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

/** Runs one script on the keys of one queue. */
export async function run(
  store: Store,
  script: Script,
  queue: QueueKeys,
  args: Args,
  options: RunOptions = {},
): Promise<Reply> {
  if (store.closing.aborted) throw closedError('the transport')
  options.signal?.throwIfAborted()
  const { keys = [] } = options
  const rest = [String(queue.all.length + keys.length), ...queue.all, ...keys, ...args]
  try {
    return await call(store, queue.meta, ['EVALSHA', script.sha, ...rest], options)
  } catch (error) {
    // A server that was restarted, or another node. Nothing has run; EVAL also loads it.
    if (wordOf(error) !== 'NOSCRIPT') throw error
    return await call(store, queue.meta, ['EVAL', script.source, ...rest], options)
  }
}

export type CallParts = Pick<Store, 'wire' | 'clock' | 'timeoutMs'>

/**
 * One command with a limit in time. When it is over the connection is given up: whatever else waits on it would wait for
 * ever.
 */
export async function call(
  { wire, clock, timeoutMs: defaultMs }: CallParts,
  key: string | undefined,
  args: Args,
  options: RunOptions = {},
): Promise<Reply> {
  const { bytes = false, signal, timeoutMs = defaultMs } = options
  const limit = openLimit(clock, timeoutMs, signal)
  const generation = wire.generation()
  const giveUp = (): void => wire.renew(generation)
  try {
    if (!wire.isReady()) await limit.race(wire.ready(), 'notApplied', giveUp)
    return await limit.race(wire.send(key, args, bytes), 'unknown', giveUp)
  } finally {
    limit.end()
  }
}

interface Limit {
  race<T>(work: Promise<T>, outcome: 'notApplied' | 'unknown', onTimeout: () => void): Promise<T>
  end(): void
}

function openLimit(clock: Clock, timeoutMs: number, signal: AbortSignal | undefined): Limit {
  let give: ((error: unknown, timedOut: boolean) => void) | undefined
  const cancel = clock.after(timeoutMs, () => give?.(undefined, true))
  const abort = (): void => give?.(signal?.reason, false)
  signal?.addEventListener('abort', abort, { once: true })
  return {
    race: (work, outcome, onTimeout) =>
      new Promise((resolve, reject) => {
        give = (reason, timedOut) => {
          if (!timedOut) return reject(reason)
          onTimeout()
          reject(new RedisConnectionError(`no answer within ${timeoutMs} ms`, outcome))
        }
        work.then(resolve, (error: unknown) => reject(callError(error, outcome)))
      }),
    end() {
      give = undefined
      cancel()
      signal?.removeEventListener('abort', abort)
    },
  }
}

/** A transport is asked only for queues that were ensured. */
export async function needQueue(store: Store, name: string): Promise<QueueKeys> {
  const known = store.queues.get(name)
  if (known !== undefined) return known
  const keys = queueKeys(store.prefix, name)
  if ((await run(store, scripts.EXISTS, keys, [])) !== 1) throw unknownQueueError(name)
  store.queues.set(name, keys)
  return keys
}

/** How often a receive that waits looks by itself: seldom when it hears of news anyway. */
export function pollEveryMs({ pollMs, ear }: Store): number {
  return pollMs ?? (ear.listens() ? 1_000 : 250)
}
