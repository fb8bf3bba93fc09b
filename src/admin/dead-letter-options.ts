import { errorClasses } from '../model/history.ts'
import { type Problems, problems, show } from '../model/problems.ts'
import type { ShelfListOptions } from '../transport/transport.ts'
import type { DeadLetterListOptions, DiscardSelection, RedriveSelection } from './admin.ts'

const LIST_DEFAULT = 50
const LIST_MAX = 500
/** Ids given by hand in one call. */
const IDS_MAX = 10_000
const RATE_MAX = 1_000_000
const SHOWN_MAX = 3

/** @throws MILLRACE_INVALID_OPTIONS with every problem at once. */
export function checkList(queue: string, options: DeadLetterListOptions): ShelfListOptions {
  const found = problems(`dead letters of queue "${queue}"`)
  found.knownKeys(options, ['errorClass', 'limit', 'cursor'])
  const { errorClass, cursor } = options
  checkErrorClass('errorClass', errorClass, found)
  if (cursor !== undefined && cursor !== null && typeof cursor !== 'string') {
    found.add(`cursor: expected the cursor of the page before, got ${show(cursor)}`)
  }
  const limit = checkLimit(options.limit, found)
  found.throwIfAny()
  return {
    limit,
    ...(errorClass === undefined ? {} : { errorClass }),
    ...(cursor === undefined || cursor === null ? {} : { cursor }),
  }
}

/** @throws MILLRACE_INVALID_OPTIONS */
export function checkAudit(queue: string, options: { readonly limit?: number }): number {
  const found = problems(`audit of queue "${queue}"`)
  found.knownKeys(options, ['limit'])
  const limit = checkLimit(options.limit, found)
  found.throwIfAny()
  return limit
}

/** @throws MILLRACE_INVALID_OPTIONS with every problem at once. */
export function checkDiscard(queue: string, what: DiscardSelection): void {
  const found = problems(`discard on queue "${queue}"`)
  found.knownKeys(what, ['ids', 'reason', 'actor'])
  checkIds(what.ids, found)
  const reason: unknown = what.reason
  if (typeof reason !== 'string' || reason.trim() === '') {
    found.add(
      `reason: expected why these are thrown away (it is kept in the audit log), got ${show(reason)}`,
    )
  }
  checkText('actor', what.actor, found)
  found.throwIfAny()
}

/**
 * A misspelt filter must not become "all of them", nor a misspelt `dryRun` the real thing.
 * @throws MILLRACE_INVALID_OPTIONS with every problem at once.
 */
export function checkRedrive(queue: string, what: RedriveSelection): Selected {
  const found = problems(`redrive on queue "${queue}"`)
  found.knownKeys(what, SELECTION_KEYS)
  // Of untyped callers both may be there.
  const { ids, filter }: Selected = what
  if ((ids === undefined) === (filter === undefined)) {
    const got = ids === undefined ? 'neither' : 'both'
    found.add(`expected either ids or filter, got ${got}; { filter: {} } is all of them`)
  }
  if (ids !== undefined) checkIds(ids, found)
  if (filter !== undefined) checkFilter(filter, found)
  for (const name of ['dryRun', 'force'] as const) {
    const value: unknown = what[name]
    if (value !== undefined && typeof value !== 'boolean') {
      found.add(`${name}: expected true or false, got ${show(value)}`)
    }
  }
  checkRate(what.ratePerSecond, found)
  checkText('actor', what.actor, found)
  checkText('reason', what.reason, found)
  found.optionalSignal('signal', what.signal)
  found.optionalFunction('onProgress', what.onProgress)
  found.optionalFunction('onFull', what.onFull)
  found.throwIfAny()
  return ids === undefined ? { filter } : { ids }
}

/** One of them is there. */
interface Selected {
  readonly ids?: readonly string[]
  readonly filter?: Filter | undefined
}

const SELECTION_KEYS: readonly string[] = [
  'ids',
  'filter',
  'dryRun',
  'ratePerSecond',
  'force',
  'actor',
  'reason',
  'signal',
  'onProgress',
  'onFull',
]

function checkFilter(filter: Filter, found: Problems): void {
  found.knownKeys(filter, ['errorClass', 'deadBefore'], 'filter')
  checkErrorClass('filter.errorClass', filter?.errorClass, found)
  const deadBefore: unknown = filter?.deadBefore
  if (deadBefore !== undefined && !(typeof deadBefore === 'number' && deadBefore >= 0)) {
    found.add(`filter.deadBefore: expected epoch ms, got ${show(deadBefore)}`)
  }
}

type Filter = Extract<RedriveSelection, { readonly filter: unknown }>['filter']

/** @throws MILLRACE_INVALID_OPTIONS */
export function checkId(queue: string, id: unknown): void {
  const found = problems(`queue "${queue}"`)
  if (typeof id !== 'string') found.add(`id: expected a message id, got ${show(id)}`)
  found.throwIfAny()
}

function checkErrorClass(name: string, errorClass: unknown, found: Problems): void {
  if (errorClass === undefined || errorClasses.some((one) => one === errorClass)) return
  found.add(`${name}: expected one of ${errorClasses.join(', ')}, got ${show(errorClass)}`)
}

export function checkLimit(limit: unknown, found: Problems): number {
  return found.number('limit', limit, { min: 1, max: LIST_MAX, default: LIST_DEFAULT })
}

export function checkIds(ids: unknown, found: Problems): void {
  if (!Array.isArray(ids)) {
    found.add(`ids: expected a list of message ids, got ${show(ids)}`)
    return
  }
  if (ids.length > IDS_MAX) {
    found.add(`ids: expected at most ${IDS_MAX} message ids, got ${ids.length}`)
  }
  const wrong = [...ids.entries()].filter(([, id]) => typeof id !== 'string')
  for (const [i, id] of wrong.slice(0, SHOWN_MAX)) {
    found.add(`ids[${i}]: expected a message id, got ${show(id)}`)
  }
}

function checkRate(rate: unknown, found: Problems): void {
  if (rate === undefined) return
  if (typeof rate === 'number' && rate > 0 && rate <= RATE_MAX) return
  found.add(`ratePerSecond: expected a number above 0 and up to ${RATE_MAX}, got ${show(rate)}`)
}

function checkText(name: string, value: unknown, found: Problems): void {
  if (value === undefined || typeof value === 'string') return
  found.add(`${name}: expected a text, got ${show(value)}`)
}
