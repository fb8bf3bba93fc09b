import { type Clock, systemClock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import { consoleLogger } from './console-logger.ts'
import type { MillraceOptions } from './create.ts'
import { problems, show } from './problems.ts'
import type { AnyQueue } from './queue.ts'

const KEYS = [
  'transport',
  'queues',
  'inbox',
  'outbox',
  'migrate',
  'signals',
  'clock',
  'random',
  'logger',
  'onDeadLetter',
  'redriveWindowMs',
  'workers',
  'intake',
]
const DAY_MS = 86_400_000

/** Options with every default filled in. */
export interface ResolvedOptions {
  readonly queues: readonly AnyQueue[]
  readonly migrate: 'auto' | 'check'
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly redriveWindowMs: number
}

/** @throws MILLRACE_INVALID_OPTIONS with every problem at once. */
export function resolveOptions<Tx>(options: MillraceOptions<Tx>): ResolvedOptions {
  const found = problems('createMillrace')
  found.knownKeys(options, KEYS)
  for (const name of ['transport', 'inbox', 'outbox'] as const) {
    const value: unknown = options[name]
    if (value === undefined && name !== 'transport') continue
    if (typeof value !== 'object' || value === null || !('connect' in value)) {
      found.add(`${name}: expected what ${example[name]} gives, got ${show(value)}`)
    }
  }
  if (!Array.isArray(options.queues) || options.queues.length === 0) {
    found.add(`queues: expected at least one queue of defineQueue, got ${show(options.queues)}`)
  } else {
    const names = options.queues.map((queue) => queue.name)
    for (const name of new Set(names.filter((one, i) => names.indexOf(one) !== i))) {
      found.add(`queues: "${name}" is defined twice; a name belongs to one definition`)
    }
  }
  const migrate: unknown = options.migrate ?? 'auto'
  if (migrate !== 'auto' && migrate !== 'check') {
    found.add(`migrate: expected "auto" or "check", got ${show(migrate)}`)
  }
  const redriveWindowMs = found.number('redriveWindowMs', options.redriveWindowMs, {
    min: 0,
    max: 365 * DAY_MS,
    default: 7 * DAY_MS,
  })
  found.throwIfAny()
  return {
    queues: options.queues,
    migrate: options.migrate ?? 'auto',
    clock: options.clock ?? systemClock(),
    random: options.random ?? Math.random,
    logger: options.logger ?? consoleLogger(),
    redriveWindowMs,
  }
}

const example = {
  transport: 'sqlite(…), postgres(…) or memory()',
  inbox: 'sqliteInbox(…) or postgresInbox(…)',
  outbox: 'sqliteOutbox(…) or postgresOutbox(…)',
} as const
