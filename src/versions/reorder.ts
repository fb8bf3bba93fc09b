import { jsonCodec } from '../codec/json.ts'
import { roundTrips } from '../codec/round-trips.ts'
import { storedKey } from '../inbox/key.ts'
import { MillraceError } from '../model/errors.ts'
import { chain, isPromise, type MaybePromise } from '../model/maybe-promise.ts'
import { show } from '../model/problems.ts'
import { checkVersionOptions, type VersionOptions } from './options.ts'
import { statesIn } from './state-in.ts'
import { entityKey, versionOf } from './version.ts'
import type { Entity, Gap, VersionState } from './version-state.ts'

export interface ReorderOptions<Payload> extends VersionOptions<Payload> {
  /** The version that a key begins with; each next one is larger by 1. Default 1. */
  readonly first?: number | bigint
  /** How many of one key may wait for a missing version; 1 to 10,000. Default 1,000. */
  readonly maxWaiting?: number
}

/** What became of one message. */
export interface Sorted {
  /** How many effects ran: 0 when it waits or came before, more than 1 when others had waited for it. */
  readonly applied: number
  /** It is kept until the versions before it have come. */
  readonly waits: boolean
}

type PayloadEffect<Payload, Tx> = (tx: Tx, payload: Payload) => MaybePromise<unknown>

export interface Reorder<Payload> {
  /**
   * Turns an effect into one for `ctx.tx` that is called for each version in order: for none while one before it is missing, for
   * this one and all that waited for it when it was the missing one.
   */
  <Tx>(
    message: { readonly payload: Payload; readonly sentAt: number },
    effect: PayloadEffect<Payload, Tx>,
  ): (tx: Tx) => MaybePromise<Sorted>
  /** Keys that wait for a version, the one that has waited longest first; at most 1,000. `tx`: any transaction or handle of that database. */
  gaps(tx: unknown, limit?: number): MaybePromise<readonly Gap[]>
  /** Gives a missing version up: goes on with the lowest that waits. Within a transaction of yours. Answers how many effects ran. */
  skip<Tx>(tx: Tx, key: string, effect: PayloadEffect<Payload, Tx>): MaybePromise<number>
}

const WAITING_MAX = 10_000
const GAPS_MAX = 1_000

/**
 * For consumers that need each step of a key in order, without an order by key: messages come in any order, and one that is too
 * early is kept in the inbox's tables and acked. It is applied in the transaction of the one that was missing. A key of which a
 * version never comes stands still: see `gaps` and `skip`. When `maxWaiting` wait, the next one fails with MILLRACE_REORDER_FULL,
 * is tried again, and is a dead letter in the end.
 *
 * @example
 * const inOrder = reorder({ queue: movements, key: (p) => p.account, version: (p) => p.number })
 * app.work(movements, async (message, ctx) => {
 *   await ctx.tx(inOrder(message, (tx, payload) => { tx.prepare(INSERT).run(payload.account, payload.cents) }))
 * })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function reorder<Payload>(options: ReorderOptions<Payload>): Reorder<Payload> {
  checkOptions(options)
  const { queue, first = 1, maxWaiting = 1_000, schema = 'millrace' } = options
  const stateIn = statesIn(queue.name, schema)
  const entityOf = (key: unknown): Entity => ({
    queue: queue.name,
    key: storedKey(entityKey(key, queue.name)),
  })
  const begin = BigInt(first)

  function sorted<Tx>(
    { payload, sentAt }: { readonly payload: Payload; readonly sentAt: number },
    effect: PayloadEffect<Payload, Tx>,
  ): (tx: Tx) => MaybePromise<Sorted> {
    return (tx) => {
      const entity = entityOf(options.key(payload))
      const version = versionOf(options.version(payload), queue.name)
      const state = stateIn(tx)
      return chain(state.lockNext(entity, begin), (next) => {
        if (version < next) return { applied: 0, waits: false }
        if (version > next) {
          const waiting = { version, payload: textOf(payload, queue.name), sentAt }
          return chain(state.keep(entity, waiting, maxWaiting), (kept) => {
            if (!kept) throw full(queue.name, next, maxWaiting)
            return { applied: 0, waits: true }
          })
        }
        return chain(effect(tx, payload), () =>
          chain(
            applyDue<Payload>(state, entity, next + 1n, (due) => effect(tx, due)),
            (due) => ({
              applied: 1 + due,
              waits: false,
            }),
          ),
        )
      })
    }
  }

  return Object.assign(sorted, {
    gaps: (tx: unknown, limit = 100) =>
      stateIn(tx).gaps(queue.name, Math.max(1, Math.min(limit, GAPS_MAX))),
    skip<Tx>(tx: Tx, key: string, effect: PayloadEffect<Payload, Tx>): MaybePromise<number> {
      const state = stateIn(tx)
      const entity = entityOf(key)
      return chain(state.lockNext(entity, begin), () =>
        chain(state.lowest(entity), (lowest) =>
          lowest === undefined
            ? 0
            : applyDue<Payload>(state, entity, lowest, (payload) => effect(tx, payload)),
        ),
      )
    },
  })
}

/** Applies what waits from `next` on without a gap, and moves the key behind it. Answers how many. */
function applyDue<Payload>(
  state: VersionState,
  entity: Entity,
  next: bigint,
  apply: (payload: Payload) => MaybePromise<unknown>,
): MaybePromise<number> {
  return chain(state.due(entity, next), (texts) =>
    chain(
      // As it went in: `textOf` lets only through what JSON gives back unchanged.
      inTurn(texts, (text) => apply(JSON.parse(text))),
      () => {
        const after = next + BigInt(texts.length)
        return chain(state.setNext(entity, after), () =>
          texts.length === 0 ? 0 : chain(state.forgetBelow(entity, after), () => texts.length),
        )
      },
    ),
  )
}

/** One after another; at once as long as nothing has to be waited for. */
function inTurn<T>(
  items: readonly T[],
  run: (item: T) => MaybePromise<unknown>,
): MaybePromise<void> {
  for (const [at, item] of items.entries()) {
    const running = run(item)
    if (isPromise(running)) return rest(running, items.slice(at + 1), run)
  }
}

async function rest<T>(
  running: Promise<unknown>,
  items: readonly T[],
  run: (item: T) => MaybePromise<unknown>,
): Promise<void> {
  await running
  for (const item of items) await run(item)
}

/** @throws MILLRACE_UNSERIALIZABLE_PAYLOAD when the schema's output is more than JSON keeps (a Date, a Map) */
function textOf(payload: unknown, queue: string): string {
  const text = Buffer.from(jsonCodec.encode(payload)).toString()
  if (roundTrips(payload, JSON.parse(text))) return text
  throw new MillraceError(
    'MILLRACE_UNSERIALIZABLE_PAYLOAD',
    `queue "${queue}": reorder keeps an early payload as JSON, and what the schema made of this one would not come back the same; ` +
      'let the schema leave it as JSON, and make dates and the like of it in the effect',
    { fields: { queue } },
  )
}

function full(queue: string, next: bigint, maxWaiting: number): MillraceError {
  return new MillraceError(
    'MILLRACE_REORDER_FULL',
    `queue "${queue}": version ${next} of this key has not come, and ${maxWaiting} later ones wait for it; send it again, or give it up ` +
      'with skip (reorder.gaps lists what is missing)',
    { retryable: true, fields: { queue, next: String(next), maxWaiting } },
  )
}

function checkOptions<Payload>(options: ReorderOptions<Payload>): void {
  const more: string[] = []
  const { maxWaiting, first } = options ?? {}
  const isCount = Number.isInteger(maxWaiting) && Number(maxWaiting) >= 1
  if (maxWaiting !== undefined && !(isCount && Number(maxWaiting) <= WAITING_MAX)) {
    more.push(`maxWaiting: expected an integer from 1 to ${WAITING_MAX}, got ${show(maxWaiting)}`)
  }
  if (first !== undefined && typeof first !== 'bigint' && !Number.isSafeInteger(first)) {
    more.push(`first: expected an integer or a bigint, got ${show(first)}`)
  }
  checkVersionOptions('reorder', options, ['first', 'maxWaiting'], more)
}
