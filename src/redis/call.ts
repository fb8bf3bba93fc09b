import { createHash } from 'node:crypto'
import type { Clock } from '../model/clock.ts'
import { callError, RedisConnectionError, wordOf } from './fault.ts'
import type { Args, Reply, Wire } from './wire.ts'

export interface CallOptions {
  readonly bytes?: boolean
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

export interface CallParts {
  readonly wire: Wire
  readonly clock: Clock
  readonly timeoutMs: number
}

export interface Script {
  readonly source: string
  /** How EVALSHA names it. */
  readonly sha: string
}

export function scriptOf(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/** Runs a script where the first of its keys lives; on a cluster all of them carry one hash tag. */
export async function runScript(
  parts: CallParts,
  script: Script,
  keys: readonly string[],
  args: Args,
  options: CallOptions = {},
): Promise<Reply> {
  const rest = [String(keys.length), ...keys, ...args]
  try {
    return await call(parts, keys[0], ['EVALSHA', script.sha, ...rest], options)
  } catch (error) {
    // A server that was restarted, or another node. Nothing has run; EVAL also loads it.
    if (wordOf(error) !== 'NOSCRIPT') throw error
    return await call(parts, keys[0], ['EVAL', script.source, ...rest], options)
  }
}

/**
 * One command with a limit in time. When it is over the connection is given up: whatever else waits on it would wait for
 * ever.
 */
export async function call(
  { wire, clock, timeoutMs: defaultMs }: CallParts,
  key: string | undefined,
  args: Args,
  options: CallOptions = {},
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
