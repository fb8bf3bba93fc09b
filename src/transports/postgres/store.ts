import type { Clock } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import type { Logger } from '../../model/logger.ts'
import type { PgExecutor, Row } from '../../sql/executor.ts'
import { allInSchema } from '../../sql/pg-name.ts'
import type { PgCallOptions, PgPool } from '../../sql/pg-pool.ts'
import type { Bell } from '../../transport/bell.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import * as adminStatements from './admin-statements.ts'
import type { Announcer } from './announcer.ts'
import type { Ear } from './ear.ts'
import * as keyStatements from './key-statements.ts'
import * as messageStatements from './statements.ts'

export type Statements = typeof messageStatements & typeof adminStatements & typeof keyStatements

export function statementsIn(schema: string): Statements {
  return allInSchema({ ...messageStatements, ...adminStatements, ...keyStatements }, schema)
}

/** One connection with what every part of the transport needs. */
export interface Store {
  readonly pool: PgPool
  readonly schema: string
  readonly sql: Statements
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  /** By queue id. */
  readonly bell: Bell<number>
  readonly ear: Ear
  readonly announcer: Announcer
  readonly channel: string
  readonly notifyInTransaction: boolean
  readonly pollMs: number | undefined
  /** Names this connection in the claims that it makes. */
  readonly owner: string
  /** Fires when the transport closes; everything that waits gives up. */
  readonly closing: AbortSignal
  /** Ids by name; queues are never removed. */
  readonly queueIds: Map<string, number>
}

export function query(
  { pool, closing }: Store,
  sql: string,
  params: readonly unknown[],
  options?: PgCallOptions,
): Promise<readonly Row[]> {
  if (closing.aborted) return Promise.reject(closedError('the transport'))
  return pool.query(sql, params, options)
}

export async function findQueue(
  store: Store,
  executor: PgExecutor,
  name: string,
): Promise<number | undefined> {
  const known = store.queueIds.get(name)
  if (known !== undefined) return known
  if (name.includes('\0')) return undefined
  const [row] = await executor.execute(store.sql.FIND_QUEUE, [name])
  if (row === undefined) return undefined
  const id = Number(row.id)
  store.queueIds.set(name, id)
  return id
}

/** A transport is asked only for queues that were ensured. */
export async function needQueue(store: Store, name: string): Promise<number> {
  const executor = {
    execute: (sql: string, params: readonly unknown[]) => query(store, sql, params),
  }
  const id = await findQueue(store, executor, name)
  if (id !== undefined) return id
  throw unknownQueueError(name)
}

/** How often a receive that waits looks into the tables: seldom when it hears of news anyway. */
export function pollEveryMs({ pollMs, ear }: Store): number {
  return pollMs ?? (ear.listens ? 1_000 : 250)
}
