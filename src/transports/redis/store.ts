import type { Clock } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import type { Logger } from '../../model/logger.ts'
import { type CallOptions, runScript, type Script } from '../../redis/call.ts'
import type { Args, Reply, Wire } from '../../redis/wire.ts'
import type { Bell } from '../../transport/bell.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import type { Traits } from '../../transport/traits.ts'
import type { Ear } from './ear.ts'
import { type QueueKeys, queueKeys } from './keys.ts'
import type { Naming } from './names.ts'
import type { TopologyMode } from './options.ts'
import { scripts } from './script.ts'

/** One connection with what every part of the transport needs. */
export interface Store {
  readonly wire: Wire
  readonly traits: Traits
  readonly naming: Naming
  readonly topology: TopologyMode
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

export interface RunOptions extends CallOptions {
  readonly keys?: readonly string[]
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
  const { keys = [], ...call } = options
  return await runScript(store, script, [...queue.all, ...keys], args, call)
}

/** A transport is asked only for queues that were ensured. */
export async function needQueue(store: Store, name: string): Promise<QueueKeys> {
  const known = store.queues.get(name)
  if (known !== undefined) return known
  const keys = queueKeys(store.naming, name)
  if ((await run(store, scripts.EXISTS, keys, [])) !== 1) throw unknownQueueError(name)
  store.queues.set(name, keys)
  return keys
}

/** How often a receive that waits looks by itself: seldom when it hears of news anyway. */
export function pollEveryMs({ pollMs, ear }: Store): number {
  return pollMs ?? (ear.listens() ? 1_000 : 250)
}
