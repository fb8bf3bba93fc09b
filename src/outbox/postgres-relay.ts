import type { PgExecutor, Row } from '../sql/executor.ts'
import { numberArray, textArray } from '../sql/pg-array.ts'
import type { PgPool } from '../sql/pg-pool.ts'
import { relayGapMs } from './backoff.ts'
import { reasonOf } from './fault-reason.ts'
import { type Handover, handOver } from './handover.ts'
import type { Publish, RelayFailure, RelayPass } from './outbox.ts'
import type { PostgresOutboxStatements } from './postgres-statements.ts'
import { type ClaimedRow, claimedRowOf, failureOf } from './row.ts'

export interface PostgresRelayContext {
  readonly pool: PgPool
  readonly statements: PostgresOutboxStatements
  readonly schema: string
  readonly random: () => number
}

export type RelayPasses = (max: number, publish: Publish) => Promise<RelayPass>

/** Keys looked at in one pass, and rows of one of them: they leave one after another. */
const KEYS_MAX = 200
const OF_KEY_MAX = 20
const PUBLISH_MAX_MS = 60_000

/** Where the last look at ordering keys ended, so that no key is always the last. */
interface KeyCursor {
  readonly queue: string
  readonly key: string
}

const firstKey: KeyCursor = { queue: '', key: '' }
const nothing: RelayPass = { taken: 0, published: 0, failed: [] }

/** A pass is one transaction: rows are locked while they are published, and removed with its commit. */
export function postgresRelay({
  pool,
  statements,
  schema,
  random,
}: PostgresRelayContext): RelayPasses {
  let cursor = firstKey

  const takeKeys = async (executor: PgExecutor): Promise<readonly Row[]> => {
    const { queue, key } = cursor
    const looked = await executor.execute(statements.TAKE_KEYS, [queue, key, KEYS_MAX, schema])
    const last = looked.length < KEYS_MAX ? undefined : looked.at(-1)
    cursor = last ? { queue: String(last.queue), key: String(last.key) } : firstKey
    return looked.filter(({ taken }) => taken === true)
  }

  const claim = async (executor: PgExecutor, max: number): Promise<readonly ClaimedRow[]> => {
    const midway = cursor !== firstKey
    let keys = await takeKeys(executor)
    if (keys.length === 0 && midway) keys = await takeKeys(executor)
    const ordered = keys.length === 0 ? [] : await ofKeys(executor, keys, Math.ceil(max / 2))
    const unordered = await executor.execute(statements.UNORDERED, [max - ordered.length])
    return [...ordered, ...unordered].map(claimedRowOf)
  }

  const ofKeys = async (
    executor: PgExecutor,
    keys: readonly Row[],
    max: number,
  ): Promise<readonly Row[]> => {
    const queues = textArray(keys.map(({ queue }) => String(queue)))
    const names = textArray(keys.map(({ key }) => String(key)))
    const ofEach = Math.min(OF_KEY_MAX, Math.ceil(max / keys.length))
    return fromTheFirst(
      keys,
      await executor.execute(statements.OF_KEYS, [queues, names, ofEach, max]),
    )
  }

  const conclude = async (
    executor: PgExecutor,
    { confirmed, failed }: Handover<ClaimedRow>,
  ): Promise<readonly RelayFailure[]> => {
    if (confirmed.length > 0) await executor.execute(statements.REMOVE, [places(confirmed)])
    if (failed.length === 0) return []
    const gaps = failed.map(({ row }) => relayGapMs(row.tries + 1, random))
    const rows = places(failed.map(({ row }) => row))
    const reasons = textArray(failed.map(({ fault }) => reasonOf(fault)))
    await executor.execute(statements.FAILED, [rows, numberArray(gaps), reasons])
    return failed.map((one, at) => failureOf(one, gaps[at] ?? 0))
  }

  return async (max, publish) => {
    if ((await pool.query(statements.HAS_ROWS, [])).length === 0) return nothing
    return await pool.begin(
      async (executor) => {
        await executor.execute(statements.LIMIT, [String(PUBLISH_MAX_MS)])
        const rows = await claim(executor, max)
        if (rows.length === 0) return nothing
        const handover = await handOver(rows, publish)
        const failed = await conclude(executor, handover)
        return { taken: rows.length, published: handover.confirmed.length, failed }
      },
      { limitIdle: false },
    )
  }
}

function places(rows: readonly ClaimedRow[]): string {
  return numberArray(rows.map(({ seq }) => BigInt(seq)))
}

/**
 * Only rows of keys whose first row is among them and due. It is not when somebody else has locked it, or when a
 * transaction that committed late put another one before it.
 */
function fromTheFirst(keys: readonly Row[], rows: readonly Row[]): readonly Row[] {
  const heads = new Map(
    keys.map(({ queue, key, seq }) => [nameOf(queue, key), BigInt(String(seq))]),
  )
  const open = new Map<string, boolean>()
  return rows.filter((row) => {
    const name = nameOf(row.aggregatetype, row.ordering_key)
    const known = open.get(name)
    if (known !== undefined) return known
    const isFirst = BigInt(String(row.seq)) <= (heads.get(name) ?? 0n)
    const fits = isFirst && row.due === true
    open.set(name, fits)
    return fits
  })
}

function nameOf(queue: unknown, key: unknown): string {
  return `${String(queue)} ${String(key)}`
}
