import { isObject } from '../model/probe.ts'

/** The parts of node-postgres that we use; any version from 8.11 has them. */
export interface PgClientLike {
  query(config: PgQueryConfig): Promise<PgResult>
  release?(destroy?: boolean): void
  /** As the server told it when the connection began. */
  readonly processID?: unknown
  on(event: string, listener: (value: unknown) => void): unknown
  removeListener(event: string, listener: (value: unknown) => void): unknown
}

export interface PgQueryConfig {
  readonly name?: string
  readonly text: string
  readonly values?: unknown[]
  readonly types?: unknown
}

export interface PgResult {
  readonly rows: readonly unknown[]
  readonly command?: string
}

/** A node-postgres Pool. */
export interface PgPoolLike {
  connect(): Promise<PgClientLike>
  readonly totalCount: number
}

/** A postgres.js `sql`. */
export interface PostgresJsLike {
  unsafe(
    query: string,
    parameters?: boolean[],
    options?: { prepare?: boolean },
  ): PromiseLike<unknown>
  begin(options: string, run: (tx: PostgresJsTransaction) => Promise<void>): Promise<unknown>
  listen(
    channel: string,
    hear: (payload: string) => void,
    onListen?: () => void,
  ): Promise<{ unlisten(): Promise<void> }>
}

export type PgSource = PgPoolLike | PostgresJsLike

type Loose = Readonly<Record<string, unknown>>

function members(value: unknown): Loose | undefined {
  return isObject(value) ? (value as Loose) : undefined
}

function has(value: unknown, ...names: readonly string[]): boolean {
  const object = members(value)
  return object !== undefined && names.every((name) => typeof object[name] === 'function')
}

export function isPgPool(value: unknown): value is PgPoolLike {
  return has(value, 'connect', 'query') && typeof members(value)?.totalCount === 'number'
}

/** A Client or a PoolClient; a Pool is not one, because its statements land on any connection. */
export function isPgClient(value: unknown): value is PgClientLike {
  return has(value, 'query', 'escapeLiteral', 'escapeIdentifier') && !isPgPool(value)
}

export function isPostgresJs(value: unknown): value is PostgresJsLike {
  return typeof value === 'function' && has(value, 'unsafe', 'begin', 'listen')
}

export interface PostgresJsTransaction {
  unsafe(query: string, parameters?: readonly unknown[], options?: object): PromiseLike<unknown>
}

/** The `sql` inside `sql.begin` or from `sql.reserve`; the outer one spreads its statements over the pool. */
export function isPostgresJsTransaction(value: unknown): value is PostgresJsTransaction {
  return (
    typeof value === 'function' &&
    has(value, 'unsafe') &&
    (has(value, 'savepoint') || has(value, 'release'))
  )
}
