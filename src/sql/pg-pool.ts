import type { Clock } from '../model/clock.ts'
import type { PgExecutor, Row } from './executor.ts'

/** Statements on a Postgres database, through whichever client the user has. Every call has a limit in time. */
export interface PgPool {
  /** One statement, a transaction by itself. */
  readonly query: (
    sql: string,
    params: readonly unknown[],
    options?: PgCallOptions,
  ) => Promise<readonly Row[]>
  /**
   * One transaction (READ COMMITTED) on one connection: commits when `run` resolves, else rolls back. `client` is the
   * client's own transaction object, as its users know it.
   */
  readonly begin: <T>(run: PgWork<T>, options?: PgBeginOptions) => Promise<T>
  /** A connection of its own that listens; absent when the pool cannot give one. */
  readonly listen?: PgListen
  /** Idempotent, bounded in time. Ends what runs; a pool of the user's stays open. */
  readonly close: () => Promise<void>
}

export type PgWork<T> = (executor: PgExecutor, client: unknown) => Promise<T>

export interface PgCallOptions {
  /** For each statement, connecting included. Default 30,000. */
  readonly timeoutMs?: number
  /** Checked before each statement; what runs is not interrupted. */
  readonly signal?: AbortSignal
}

export interface PgBeginOptions extends PgCallOptions {
  /**
   * The server ends it when it stands idle for ten seconds. False: `run` waits for what may take longer (a handler, another backend), and sets
   * a limit of its own. Default true.
   */
  readonly limitIdle?: boolean
}

export type PgListen = (channel: string, ear: PgEar) => Promise<PgListening>

export interface PgEar {
  readonly hear: (payload: string) => void
  /** The connection is gone; nothing more will be heard. */
  readonly lost: (error: unknown) => void
}

export interface PgListening {
  /** Rejects when the connection is dead. */
  readonly ping: () => Promise<void>
  readonly close: () => void
}

export interface PgPoolOptions {
  readonly clock: Clock
  /** Default for each call, in ms. Default 30,000. */
  readonly timeoutMs?: number
}
