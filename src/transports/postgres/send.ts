import { closedError } from '../../model/closed-error.ts'
import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { PgExecutor } from '../../sql/executor.ts'
import { allRefused, Undone } from '../../transport/atomic.ts'
import { duplicateOf, refused, stored } from '../../transport/outcomes.ts'
import type { SendOptions } from '../../transport/transport.ts'
import { type Item, nameOf, refusal, storeParams } from './item.ts'
import { settleKeys } from './keys.ts'
import { held, isLocked } from './locked.ts'
import { keysOf, lockKeys } from './order.ts'
import { sendApart } from './send-apart.ts'
import { findQueue, query, type Store } from './store.ts'

/** What was gathered by chance is soon sent apart; one that knows what it waits for has longer, but less than a statement may take (30 s). */
const GATHERED_LOCK_MS = 1_000
const LOCK_MS = 20_000
/** What was held a second ago will hardly be free now, and each that asks keeps a connection meanwhile. */
const APART_LOCK_MS = 25
/** A statement carries at most this many bytes of bodies; in hex they are twice as long. */
const STATEMENT_BYTES = 32 * 1024 * 1024

/** Stores a batch; what may fail by halves runs in one transaction, the rest is one statement. */
export async function send(
  store: Store,
  queue: string,
  batch: readonly Envelope[],
  options: SendOptions,
): Promise<readonly Sent[]> {
  const { atomic = false } = options
  const together = !atomic && batch.length > 1
  const { lockMs = together ? GATHERED_LOCK_MS : LOCK_MS } = options
  try {
    return await sendOnce(store, queue, batch, { ...options, lockMs })
  } catch (error) {
    if (!isLocked(error)) throw error
    if (!together) return batch.map(() => held(error))
    return await sendApart(batch, (part) =>
      sendOnce(store, queue, part, { ...options, lockMs: APART_LOCK_MS }),
    )
  }
}

interface LockedSendOptions extends SendOptions {
  /** How long it waits for what transactions of others hold. */
  readonly lockMs: number
}

async function sendOnce(
  store: Store,
  queue: string,
  batch: readonly Envelope[],
  { signal, atomic = false, lockMs }: LockedSendOptions,
): Promise<readonly Sent[]> {
  if (batch.length === 0) return []
  if (store.closing.aborted) throw closedError('the transport')
  const executor: PgExecutor = { execute: (sql, params) => query(store, sql, params, { signal }) }
  const queueId = await findQueue(store, executor, queue)
  if (queueId === undefined) return batch.map(() => refused('notFound'))
  const sorted = sortItems(batch)
  const judged = batch.map(({ id }, place) => sorted.refusals.get(place) ?? duplicateOf(id))
  const refusedAtOnce = atomic ? allRefused(judged) : undefined
  if (refusedAtOnce !== undefined) return refusedAtOnce
  const outcomes = needsTransaction(sorted)
    ? await sendInTransaction(store, queueId, batch, sorted, { signal, atomic, lockMs })
    : outcomesOf(batch, await storeItems(store, executor, queueId, sorted, lockMs))
  if (outcomes.some((outcome) => outcome.ok && !outcome.duplicate)) news(store, queueId)
  if (sorted.keyed.length > 0) pruneKeys(store, sorted.keyed.length)
  return outcomes
}

/** Here and elsewhere, somebody may wait for these. */
export function news(store: Store, queueId: number): void {
  store.bell.ring(queueId)
  store.announcer.announce(queueId)
}

export interface Sorted {
  /** By place. */
  readonly refusals: ReadonlyMap<number, Sent>
  readonly plain: readonly Item[]
  readonly keyed: readonly Item[]
}

export function sortItems(batch: readonly Envelope[]): Sorted {
  const refusals = new Map<number, Sent>()
  const plain: Item[] = []
  const keyed: Item[] = []
  for (const [place, envelope] of batch.entries()) {
    const bad = refusal(envelope)
    const keys = envelope.remember ?? []
    if (bad) refusals.set(place, bad)
    else (keys.length > 0 ? keyed : plain).push({ place, envelope, keys })
  }
  return { refusals, plain, keyed }
}

/**
 * One statement is a transaction by itself; keys are decided over several, ordering keys are locked first, and some batches are
 * too large for one.
 */
function needsTransaction({ plain, keyed }: Sorted): boolean {
  if (keyed.length > 0 || chunks(plain).length > 1) return true
  const ordered = orderingKeysOf(plain).length
  // With others beside it, so that a key that somebody holds keeps only its own waiting.
  return ordered > 1 || (ordered === 1 && plain.length > 1)
}

function orderingKeysOf(items: readonly Item[]): readonly string[] {
  return keysOf(items.map(({ envelope }) => envelope))
}

async function sendInTransaction(
  store: Store,
  queueId: number,
  batch: readonly Envelope[],
  sorted: Sorted,
  { signal, atomic, lockMs }: LockedSendOptions,
): Promise<readonly Sent[]> {
  try {
    return await store.pool.begin(
      async (executor) => {
        await executor.execute(store.sql.LIMIT_LOCKS, [String(lockMs)])
        const outcomes = outcomesOf(batch, await storeItems(store, executor, queueId, sorted))
        const undone = atomic ? allRefused(outcomes) : undefined
        if (undone !== undefined) throw new Undone(undone)
        return outcomes
      },
      { signal },
    )
  } catch (error) {
    if (error instanceof Undone) return error.outcomes
    throw error
  }
}

/** Stores what can be stored, through whichever executor; answers by place. `lockMs` where each statement is a transaction by itself. */
export async function storeItems(
  { sql }: Pick<Store, 'sql'>,
  executor: PgExecutor,
  queueId: number,
  { refusals, plain, keyed }: Sorted,
  lockMs?: number,
): Promise<ReadonlyMap<number, Sent>> {
  const outcomes = new Map(refusals)
  const free: Item[] = [...plain]
  for (const round of rounds(keyed)) {
    const decided = await settleKeys(sql, executor, queueId, round)
    for (const [place, outcome] of decided.outcomes) outcomes.set(place, outcome)
    free.push(...decided.won)
  }
  free.sort((a, b) => a.place - b.place)
  await lockKeys({ sql }, executor, queueId, { keys: orderingKeysOf(free), before: 'send' })
  const fresh = new Set<string>()
  for (const chunk of chunks(free)) {
    const rows = await executor.execute(sql.STORE, storeParams(queueId, chunk, lockMs))
    for (const row of rows) fresh.add(String(row.id))
  }
  // Of two items with one id the first was stored.
  for (const { place, envelope } of free) {
    const { id } = envelope
    outcomes.set(place, fresh.delete(id) ? stored(id) : duplicateOf(id))
  }
  return outcomes
}

export function outcomesOf(
  batch: readonly Envelope[],
  outcomes: ReadonlyMap<number, Sent>,
): readonly Sent[] {
  return batch.map((_, place) => outcomes.get(place) ?? refused('unknown'))
}

/** Items that share a key are decided one after the other, in their order. */
function rounds(keyed: readonly Item[]): readonly (readonly Item[])[] {
  const all: Item[][] = []
  const seen = new Map<string, number>()
  for (const item of keyed) {
    const names = item.keys.map(nameOf)
    const round = Math.max(0, ...names.map((name) => seen.get(name) ?? 0))
    for (const name of names) seen.set(name, round + 1)
    const list = all[round]
    if (list) list.push(item)
    else all[round] = [item]
  }
  return all
}

function chunks(items: readonly Item[]): readonly (readonly Item[])[] {
  const all: Item[][] = []
  let bytes = 0
  for (const item of items) {
    const size = item.envelope.body.byteLength
    const last = all.at(-1)
    if (last && bytes + size <= STATEMENT_BYTES) last.push(item)
    else all.push([item])
    bytes = last && bytes + size <= STATEMENT_BYTES ? bytes + size : size
  }
  return all
}

/** Forgets expired keys a little faster than new ones come, so that they never pile up. Nobody waits for it. */
function pruneKeys(store: Store, brought: number): void {
  query(store, store.sql.PRUNE_KEYS, [2 * brought + 10]).catch(() => {})
}
