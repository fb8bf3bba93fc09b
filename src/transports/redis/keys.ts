import { errorClasses } from '../../model/history.ts'
import { keysBeside, type Naming, namesOf } from './names.ts'

/**
 * The keys of one queue. All carry one hash tag, so that a script may touch them together on a cluster; every
 * script gets them in the order of `all`, which `PRELUDE` takes apart.
 */
export interface QueueKeys {
  /** The one that is read: other programs may write to it. */
  readonly stream: string
  /** The consumer group that all workers share. */
  readonly group: string
  readonly meta: string
  readonly suspects: string
  /** The stream of what has a fair key, from the moment that it is handed out. */
  readonly turns: string
  readonly claims: string
  /** The channel that wakes receives. */
  readonly news: string
  readonly all: readonly string[]
  /** The stream of a level above 0. */
  level(level: number): string
  /** One string per key that a sender asked to remember. */
  remembered(kind: string, key: string): string
}

/** Of priority, the lowest included: each above it has a stream of its own. */
export const LEVELS = 10

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
  'heads',
  'behind',
  'halted',
  ...Array.from({ length: LEVELS - 1 }, (_, below) => levelName(below + 1)),
  'fair',
  'turns',
] as const

function levelName(level: number): string {
  return `ready:${level}`
}

export function queueKeys(naming: Naming, queue: string): QueueKeys {
  const { stream, group } = namesOf(naming, queue)
  const base = keysBeside(stream)
  return {
    ...{ stream, group },
    meta: `${base}meta`,
    suspects: `${base}suspects`,
    turns: `${base}turns`,
    claims: `${base}claims`,
    news: `${base}news`,
    all: NAMES.map((name) => (name === 'ready' ? stream : base + name)),
    level: (level) => base + levelName(level),
    remembered: (kind, key) => `${base}key:${kind}:${key}`,
  }
}
