import { Socket } from 'node:net'
import type { default as NodePostgres } from 'pg'
import { MillraceError } from '../model/errors.ts'
import { clientExecutor, queryClient } from './pg-executor.ts'
import { beforeStatement, pgFault } from './pg-fault.ts'
import { CALL_TIMEOUT_MS, LIMIT_IDLE, limited, noConnection, poolClosed } from './pg-limit.ts'
import { nodePostgresListen } from './pg-listen-node.ts'
import type { PgCallOptions, PgPool, PgPoolOptions, PgWork } from './pg-pool.ts'
import { learnSession } from './pg-prepared.ts'
import type { PgClientLike, PgPoolLike } from './pg-shapes.ts'

const CONNECTIONS_MAX = 10
const CONNECT_TIMEOUT_MS = 10_000
const CLOSE_TIMEOUT_MS = 2_000
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE'
/** Both in one round trip. */
const BEGIN_LIMITED = `${BEGIN};${LIMIT_IDLE}`
const COMMIT = 'COMMIT'
const ROLLBACK = 'ROLLBACK'

/** A pool of our own, ended with `close`. */
export function ownNodePostgresPool(
  pg: typeof NodePostgres,
  url: string,
  options: PgPoolOptions,
): PgPool {
  const sockets = new Set<Socket>()
  const pool = new pg.Pool({
    connectionString: url,
    stream: () => kept(sockets),
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'millrace',
  })
  const adapted = nodePostgresPool(pool, options)
  let closed: Promise<void> | undefined
  return {
    ...adapted,
    close: () => {
      closed ??= adapted.close().then(() => ended(pool, sockets, options))
      return closed
    },
  }
}

function kept(sockets: Set<Socket>): Socket {
  const socket = new Socket()
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
  return socket
}

/**
 * `end` waits for every client, also one that hangs; those were dropped before, and the rest has a limit. What connects still, or waits for
 * the other side to hang up, would keep the process for ten seconds and more.
 */
async function ended(
  pool: { end(): Promise<void> },
  sockets: ReadonlySet<Socket>,
  { clock }: PgPoolOptions,
): Promise<void> {
  await limited(pool.end(), { clock, timeoutMs: CLOSE_TIMEOUT_MS }).catch(() => {})
  for (const socket of sockets) socket.destroy()
}

/** A client while a call has it. */
interface Borrowed {
  readonly client: PgClientLike
  release(): void
  /** Drops the connection; whatever waits on it rejects. */
  drop(): void
}

export function nodePostgresPool(pool: PgPoolLike, options: PgPoolOptions): PgPool {
  const { clock, timeoutMs: defaultMs = CALL_TIMEOUT_MS } = options
  const closing = new AbortController()
  const inUse = new Set<Borrowed>()
  ignoreIdleErrors(pool)

  const borrow = async ({ timeoutMs = defaultMs, signal }: PgCallOptions): Promise<Borrowed> => {
    try {
      signal?.throwIfAborted()
      closing.signal.throwIfAborted()
      const connecting = pool.connect()
      const giveBack = (): void =>
        void connecting.then(
          (client) => client.release?.(),
          () => {},
        )
      const client = await limited(connecting, {
        clock,
        timeoutMs,
        late: noConnection,
        abandon: giveBack,
        ended: closing.signal,
      })
      const borrowed = borrowedClient(client, inUse)
      await learn(borrowed, { clock, timeoutMs, ended: closing.signal })
      if (signal?.aborted) {
        borrowed.release()
        signal.throwIfAborted()
      }
      return borrowed
    } catch (error) {
      throw beforeStatement(error)
    }
  }

  const within =
    (borrowed: Borrowed, timeoutMs = defaultMs) =>
    <T>(call: Promise<T>): Promise<T> =>
      limited(call, { clock, timeoutMs, abandon: borrowed.drop, cutOff: closing.signal })

  return {
    query: async (sql, params, call = {}) => {
      const borrowed = await borrow(call)
      try {
        return await within(borrowed, call.timeoutMs)(queryClient(borrowed.client, sql, params))
      } catch (error) {
        dropBroken(borrowed, error)
        throw error
      } finally {
        borrowed.release()
      }
    },
    begin: async (run, call = {}) => {
      const borrowed = await borrow(call)
      try {
        const begin = call.limitIdle === false ? BEGIN : BEGIN_LIMITED
        return await transact(borrowed, within(borrowed, call.timeoutMs), begin, run)
      } catch (error) {
        dropBroken(borrowed, error)
        throw error
      } finally {
        borrowed.release()
      }
    },
    listen: nodePostgresListen(pool, options),
    close: async () => {
      if (closing.signal.aborted) return
      closing.abort(poolClosed())
      for (const borrowed of [...inUse]) borrowed.drop()
    },
  }
}

/** Whether this connection may keep prepared statements; asked once in its life. */
async function learn(
  borrowed: Borrowed,
  limits: { clock: PgPoolOptions['clock']; timeoutMs: number; ended: AbortSignal },
): Promise<void> {
  try {
    await limited(learnSession(borrowed.client), { ...limits, abandon: borrowed.drop })
  } catch (error) {
    borrowed.drop()
    throw error
  }
}

type Within = <T>(call: Promise<T>) => Promise<T>

async function transact<T>(
  borrowed: Borrowed,
  within: Within,
  begin: string,
  run: PgWork<T>,
): Promise<T> {
  const { client } = borrowed
  const bounded = clientExecutor(client)
  const executor = {
    execute: (sql: string, params: readonly unknown[]) => within(bounded.execute(sql, params)),
  }
  await within(client.query({ text: begin })).catch((error: unknown) => {
    throw beforeStatement(error)
  })
  let value: T
  try {
    value = await run(executor, client)
  } catch (error) {
    await within(client.query({ text: ROLLBACK })).catch(() => borrowed.drop())
    throw error
  }
  const { command } = await within(client.query({ text: COMMIT }))
  // A statement failed and its error was swallowed: Postgres then answers COMMIT with a rollback and no error.
  if (command === ROLLBACK) throw rolledBack()
  return value
}

function borrowedClient(client: PgClientLike, inUse: Set<Borrowed>): Borrowed {
  let returned = false
  const give = (destroy: boolean): void => {
    if (returned) return
    returned = true
    inUse.delete(borrowed)
    client.removeListener('error', ignore)
    // A dropped client may still report the end of its connection.
    if (destroy) client.on('error', ignore)
    client.release?.(destroy)
  }
  const borrowed: Borrowed = { client, release: () => give(false), drop: () => give(true) }
  // A connection that ends between two statements is an event; the next statement rejects by itself.
  client.on('error', ignore)
  inUse.add(borrowed)
  return borrowed
}

/** The server's goodbye may come before the end of the connection, which would then go back as if it were good. */
function dropBroken(borrowed: Borrowed, error: unknown): void {
  const { code, outcome } = pgFault(error)
  if (code === 'unavailable' && outcome === 'unknown') borrowed.drop()
}

function ignore(): void {}

const watched = new WeakSet<object>()

/**
 * An idle connection that ends is replaced at the next call; without a listener the event would end the process. So it would for a
 * new one whose end comes with the same packet as the server's word that it is ready: the pool has taken its own listener off by
 * then, and who waits for the client gets it a moment later. Until it has, we listen.
 */
function ignoreIdleErrors(pool: PgPoolLike): void {
  if (watched.has(pool) || !('on' in pool) || typeof pool.on !== 'function') return
  watched.add(pool)
  pool.on('error', ignore)
  pool.on('connect', (client: PgClientLike) => {
    client.on('error', ignore)
    setImmediate(() => client.removeListener('error', ignore))
  })
}

function rolledBack(): MillraceError {
  return new MillraceError(
    'MILLRACE_BACKEND_FAULT',
    'the transaction was rolled back: one of its statements had failed, and the error was swallowed; nothing was stored',
  )
}
