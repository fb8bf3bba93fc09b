import { errorClasses } from '../../model/history.ts'

/**
 * The keys of one queue. All of them carry one hash tag, so that a script may touch them together on a cluster; every
 * script gets them in the order of `all`, which `PRELUDE` takes apart.
 */
export interface QueueKeys {
  readonly meta: string
  /** The channel that wakes receives. */
  readonly news: string
  readonly all: readonly string[]
  /** One string per key that a sender asked to remember. */
  remembered(kind: string, key: string): string
}

const NAMES = [
  'meta',
  'ready',
  'suspects',
  'claims',
  'ids',
  'scheduled',
  'parked',
  'shelf',
  'dead',
  'audit',
  ...errorClasses.map((errorClass) => `dead:${errorClass}`),
] as const

export function queueKeys(prefix: string, queue: string): QueueKeys {
  const base = `{${prefix}:${tagged(queue)}}:`
  return {
    meta: `${base}meta`,
    news: `${base}news`,
    all: NAMES.map((name) => base + name),
    remembered: (kind, key) => `${base}key:${kind}:${key}`,
  }
}

/** A closing brace would end the hash tag early, and two queues could then look like one. */
function tagged(queue: string): string {
  return queue.replace(/[%{}]/g, (one) => `%${one.charCodeAt(0).toString(16)}`)
}
