import { type Clock, systemClock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import { read } from '../model/probe.ts'
import { type Problems, problems, show } from '../model/problems.ts'
import { type ResolvedClaimCheck, resolveClaimCheck } from './claim-check-choice.ts'
import { CONFIG_KEYS } from './config.ts'
import { consoleLogger } from './console-logger.ts'
import type { MillraceOptions } from './create.ts'
import { isStoring } from './own-store.ts'
import type { AnyQueue } from './queue.ts'
import { safeLogger } from './safe-logger.ts'

const DAY_MS = 86_400_000

/** Options with every default filled in. */
export interface ResolvedOptions {
  readonly queues: readonly AnyQueue[]
  readonly migrate: 'auto' | 'check'
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly redriveWindowMs: number
  readonly claimCheck: ResolvedClaimCheck | undefined
}

/** The options, and what is wrong with them that keeps nobody from looking at the rest. */
export interface CheckedOptions {
  readonly resolved: ResolvedOptions
  readonly found: readonly string[]
}

/** @throws MILLRACE_INVALID_OPTIONS with every problem at once, when nothing can be opened with these. */
export function resolveOptions<Tx>(options: MillraceOptions<Tx>): CheckedOptions {
  const found = problems('createMillrace')
  found.knownKeys(options, CONFIG_KEYS)
  for (const name of ['transport', 'store', 'inbox', 'outbox'] as const) {
    const value: unknown = options[name]
    if (value === undefined && name !== 'transport') continue
    if (typeof value !== 'object' || value === null || !('connect' in value)) {
      found.add(`${name}: expected what ${example[name]} gives, got ${show(value)}`)
    }
  }
  checkQueues(options.queues, found)
  checkBreakers(options, found)
  checkParts(options, found)
  const migrate: unknown = options.migrate ?? 'auto'
  if (migrate !== 'auto' && migrate !== 'check') {
    found.add(`migrate: expected "auto" or "check", got ${show(migrate)}`)
  }
  const redriveWindowMs = found.number('redriveWindowMs', options.redriveWindowMs, {
    min: 0,
    max: 365 * DAY_MS,
    default: 7 * DAY_MS,
  })
  const before = found.all().length
  const claimCheck = resolveClaimCheck(options, redriveWindowMs, found)
  if (!isOpenable(options)) found.throwIfAny()
  return {
    found: found.all(),
    resolved: {
      queues: options.queues,
      migrate: options.migrate ?? 'auto',
      clock: options.clock ?? systemClock(),
      random: options.random ?? Math.random,
      logger: safeLogger(options.logger ?? consoleLogger()),
      redriveWindowMs,
      claimCheck: found.all().length > before ? undefined : claimCheck,
    },
  }
}

/** What opens the transport and names its queues is what it should be. */
function isOpenable({
  transport,
  queues,
  clock,
  random,
  logger,
}: Partial<Record<'transport' | 'queues' | 'clock' | 'random' | 'logger', unknown>>): boolean {
  const check = problems('createMillrace')
  checkQueues(queues, check)
  checkParts({ clock, random, logger }, check)
  return check.all().length === 0 && typeof read(transport, 'connect') === 'function'
}

function checkQueues(queues: unknown, found: Problems): void {
  if (!Array.isArray(queues) || queues.length === 0) {
    found.add(`queues: expected at least one queue of defineQueue, got ${show(queues)}`)
    return
  }
  const names: unknown[] = []
  for (const [i, queue] of queues.entries()) {
    // What a hand-made object lacks is found here, not at the first message that fails.
    if (isDefinition(queue)) names.push(read(queue, 'name'))
    else found.add(`queues[${i}]: expected what defineQueue gives, got ${showQueue(queue)}`)
  }
  for (const name of new Set(names.filter((one, i) => names.indexOf(one) !== i))) {
    found.add(`queues: "${name}" is defined twice; a name belongs to one definition`)
  }
}

/** Said before the first message, not when the first downstream fails. */
function checkBreakers(
  {
    queues,
    store,
    transport,
  }: { readonly queues: unknown; readonly store?: unknown; readonly transport: unknown },
  found: Problems,
): void {
  if (store !== undefined || isStoring(transport) || !Array.isArray(queues)) return
  for (const queue of queues) {
    for (const [option, what] of SHARED_LIMITS) {
      if (read(read(queue, option), 'scope') !== 'store') continue
      found.add(
        `store: queue ${show(read(queue, 'name'))} has a ${option} that all workers share through a store; give one (see millrace/store), or write ${option}: { scope: 'process' }: then it is the ${what} of each process`,
      )
    }
    if (read(read(queue, 'breaker'), 'scope') !== 'store') continue
    found.add(
      `store: queue ${show(read(queue, 'name'))} has a downstream, and its breaker is shared by all workers through a store; ` +
        "give store: postgresStore({ url }), redisStore({ url }), sqliteStore({ file }) or memoryStore() of millrace/store, or write breaker: { scope: 'process' }: then each process finds out by itself",
    )
  }
}

const SHARED_LIMITS = [
  ['rateLimit', 'rate'],
  ['concurrencyLimit', 'limit'],
] as const

function isDefinition(queue: unknown): boolean {
  return DEFINED.every((name) => read(queue, name) !== undefined)
}

const DEFINED = ['name', 'schema', 'retry', 'dedupe', 'capacity', 'handlerTimeoutMs', 'codec']

function showQueue(queue: unknown): string {
  if (read(queue, 'payload') === undefined) return show(queue)
  return `the options of queue ${show(read(queue, 'name'))}; write defineQueue(…) around them`
}

function checkParts(options: Partial<Record<Part, unknown>>, found: Problems): void {
  checkFunctions('logger', options.logger, LEVELS, found)
  checkFunctions('clock', options.clock, ['now', 'after'], found)
  found.optionalFunction('random', options.random)
  found.optionalFunction('onDeadLetter', options.onDeadLetter)
  const { signals } = options
  if (signals !== undefined && typeof signals !== 'boolean') {
    found.add(`signals: expected true or false, got ${show(signals)}`)
  }
}

type Part = 'logger' | 'clock' | 'random' | 'onDeadLetter' | 'signals'

function checkFunctions(
  name: string,
  value: unknown,
  functions: readonly string[],
  found: Problems,
): void {
  if (value === undefined) return
  const missing = functions.filter((each) => typeof read(value, each) !== 'function')
  if (missing.length > 0) {
    found.add(
      `${name}: expected an object with the functions ${functions.join(', ')}, got ${show(value)} without ${missing.join(', ')}`,
    )
  }
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

const example = {
  transport: 'sqlite(…), postgres(…), redis(…) or another transport',
  store: 'postgresStore(…), redisStore(…), sqliteStore(…) or memoryStore()',
  inbox: 'sqliteInbox(…) or postgresInbox(…)',
  outbox: 'sqliteOutbox(…) or postgresOutbox(…)',
} as const
