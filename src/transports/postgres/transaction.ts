import { type Delivery, type Sent, type Settled, settled } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { MaybePromise } from '../../model/maybe-promise.ts'
import { isObject } from '../../model/probe.ts'
import type { PgExecutor } from '../../sql/executor.ts'
import { pgExecutor } from '../../sql/pg-executor.ts'
import { refuseIdle } from '../../sql/pg-idle.ts'
import { allRefused } from '../../transport/atomic.ts'
import { lost, refused } from '../../transport/outcomes.ts'
import type { Transaction } from '../../transport/transport.ts'
import { heldOf } from './held.ts'
import { keysOf, lockKeys } from './order.ts'
import { outcomesOf, sortItems, storeItems } from './send.ts'
import { claimsOf, heldOfAll, seqsOf } from './settle.ts'
import { findQueue, query, type Store } from './store.ts'

/** Our acts in the user's open transaction; undefined when it is on another database or another kind of client. */
export function transactionFinder(
  store: Store,
  identity: string,
): (tx: unknown) => MaybePromise<Transaction | undefined> {
  const identities = new WeakMap<object, string>()
  const asking = new WeakMap<object, Promise<string>>()
  let ours = identity

  const isOurs = (found: string): boolean => found === ours
  const identityOf = async (tx: object, executor: PgExecutor): Promise<string> => {
    const known = identities.get(tx)
    if (known !== undefined && isOurs(known)) return known
    // Sends that come together ask once: a client of pg must not be given a second query while one runs.
    const asked = asking.get(tx) ?? readIdentity(store, executor)
    asking.set(tx, asked)
    try {
      const found = await asked
      identities.set(tx, found)
      return found
    } finally {
      asking.delete(tx)
    }
  }

  const find = async (tx: object, executor: PgExecutor): Promise<Transaction | undefined> => {
    refuseIdle(tx)
    const theirs = await identityOf(tx, executor)
    if (!isOurs(theirs)) {
      // Ours changes when the server was started again.
      ours = await readIdentity(store, {
        execute: (sql, params) => query(store, sql, params, { timeoutMs: IDENTITY_TIMEOUT_MS }),
      })
      if (!isOurs(theirs) || theirs === NOWHERE) return undefined
    }
    return transactionOn(store, executor)
  }

  return (tx) => {
    const executor = pgExecutor(tx)
    // At once, because a synchronous client (SQLite with an outbox) may commit as soon as this call returns.
    return executor && isObject(tx) ? find(tx, executor) : undefined
  }
}

const NOWHERE = ''

/** The user's transaction may hold the last connection of a shared pool, and then there is none to ask with. */
const IDENTITY_TIMEOUT_MS = 5_000

export async function readIdentity(
  { sql, schema }: Pick<Store, 'sql' | 'schema'>,
  executor: PgExecutor,
): Promise<string> {
  const [row] = await executor.execute(sql.IDENTITY, [schema])
  return row === undefined ? NOWHERE : String(row.identity)
}

function transactionOn(store: Store, executor: PgExecutor): Transaction {
  return {
    synchronous: false,
    send: (queue, batch, options) =>
      options?.atomic === true
        ? sendAtomic(store, executor, queue, batch)
        : send(store, executor, queue, batch),
    ack: (queue, batch) => ack(store, executor, queue, batch),
  }
}

/** All or nothing within a transaction that goes on: what a conflict leaves behind is rolled back to a savepoint. */
async function sendAtomic(
  store: Store,
  executor: PgExecutor,
  queue: string,
  batch: readonly Envelope[],
): Promise<readonly Sent[]> {
  const { SAVEPOINT, ROLLBACK_TO_SAVEPOINT, RELEASE_SAVEPOINT } = store.sql
  await executor.execute(SAVEPOINT, [])
  const outcomes = await send(store, executor, queue, batch)
  const undone = allRefused(outcomes)
  if (undone !== undefined) await executor.execute(ROLLBACK_TO_SAVEPOINT, [])
  await executor.execute(RELEASE_SAVEPOINT, [])
  return undone ?? outcomes
}

async function send(store: Store, executor: PgExecutor, queue: string, batch: readonly Envelope[]) {
  if (batch.length === 0) return []
  const queueId = await findQueue(store, executor, queue)
  if (queueId === undefined) return batch.map(() => refused('notFound'))
  const outcomes = outcomesOf(batch, await storeItems(store, executor, queueId, sortItems(batch)))
  const stored = outcomes.some((outcome) => outcome.ok && !outcome.duplicate)
  if (stored) await notify(store, executor, queueId)
  return outcomes
}

/** Sent by the server when the transaction commits, once however often it is asked for within one. */
async function notify(store: Store, executor: PgExecutor, queueId: number): Promise<void> {
  if (!store.notifyInTransaction) return
  await executor.execute(store.sql.NOTIFY, [store.channel, String(queueId)])
}

async function ack(
  store: Store,
  executor: PgExecutor,
  queue: string,
  batch: readonly Delivery[],
): Promise<readonly Settled[]> {
  const all = heldOfAll(batch)
  if (all.length === 0) return batch.map(() => lost)
  const keys = keysOf(batch.map(({ envelope }) => envelope))
  if (keys.length > 0) {
    const queueId = await findQueue(store, executor, queue)
    if (queueId === undefined) return batch.map(() => lost)
    await lockKeys(store, executor, queueId, { keys, before: 'end' })
    await notify(store, executor, queueId)
  }
  const done = seqsOf(await executor.execute(store.sql.ACK_IN_LEASE, claimsOf(all)))
  return batch.map((delivery) => {
    const held = heldOf(delivery)
    if (!held || !done.delete(held.seq)) return lost
    held.leaving = true
    return settled
  })
}
