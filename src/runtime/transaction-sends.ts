import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { MillraceError } from '../model/errors.ts'
import { chain, type MaybePromise } from '../model/maybe-promise.ts'
import { isObject } from '../model/probe.ts'
import { show } from '../model/problems.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { isPgPool, isPostgresJs } from '../sql/pg-shapes.ts'
import type { Transport } from '../transport/transport.ts'
import { faultless } from './faultless.ts'
import { type Gatherer, gatherer } from './gatherer.ts'

/**
 * Sends inside a user's open transaction: straight into the transport's tables when they are in the same database,
 * else into the outbox there. They commit or vanish with the transaction.
 */
export interface TransactionSends {
  /** Concurrent sends of one transaction are gathered within it. Has happened on return when the client is synchronous. */
  one(queue: string, tx: unknown, envelope: Envelope): MaybePromise<Sent>
  many(queue: string, tx: unknown, batch: readonly Envelope[]): MaybePromise<readonly Sent[]>
}

/** How messages get into one transaction. */
interface Insert {
  readonly synchronous: boolean
  readonly insert: (
    queue: string,
    batch: readonly Envelope[],
    options?: { readonly atomic?: boolean },
  ) => MaybePromise<readonly Sent[]>
}

export function transactionSends(
  transport: Transport,
  outbox: Outbox | undefined,
): TransactionSends {
  const gatherers = new WeakMap<object, Map<string, Gatherer<Envelope, Sent>>>()

  const gathered = (queue: string, tx: object, insert: Insert): Gatherer<Envelope, Sent> => {
    const ofTx = gatherers.get(tx) ?? new Map<string, Gatherer<Envelope, Sent>>()
    gatherers.set(tx, ofTx)
    let found = ofTx.get(queue)
    if (found === undefined) {
      found = gatherer({
        maxBatch: transport.traits.limits.sendBatch,
        flush: (batch) => faultless(transport, batch.length, () => insert.insert(queue, batch)),
      })
      ofTx.set(queue, found)
    }
    return found
  }

  const many: TransactionSends['many'] = (queue, tx, batch) =>
    chain(insertFor(transport, outbox, tx), (insert) =>
      insert.synchronous
        ? insert.insert(queue, batch, { atomic: true })
        : faultless(transport, batch.length, () => insert.insert(queue, batch, { atomic: true })),
    )

  return {
    many,
    one: (queue, tx, envelope) =>
      chain(insertFor(transport, outbox, tx), (insert) => {
        if (insert.synchronous) return chain(insert.insert(queue, [envelope]), only)
        return typeof tx === 'object' || typeof tx === 'function'
          ? gathered(queue, tx as object, insert).add(envelope)
          : chain(many(queue, tx, [envelope]), only)
      }),
  }
}

function only(sent: readonly Sent[]): Sent {
  const [one] = sent
  if (one === undefined) throw new Error('no outcome for the message')
  return one
}

function insertFor(
  transport: Transport,
  outbox: Outbox | undefined,
  tx: unknown,
): MaybePromise<Insert> {
  return chain(transport.transaction?.(tx), (own) => {
    if (own !== undefined) return { synchronous: own.synchronous, insert: own.send }
    return chain(outbox?.transaction(tx), (rows) => {
      if (rows !== undefined) return { synchronous: rows.synchronous, insert: rows.add }
      throw noTransaction(tx) ?? foreign(transport, outbox)
    })
  })
}

/** What is no transaction of any database; undefined for what may be one. */
function noTransaction(tx: unknown): MillraceError | undefined {
  const what = isPgPool(tx)
    ? 'a Pool of pg is no transaction, its statements go to any connection; give the client on which you said BEGIN'
    : isPostgresJs(tx)
      ? 'the outer sql of postgres.js is no transaction; give the one that sql.begin hands to its function'
      : isObject(tx)
        ? undefined
        : `expected an open transaction, got ${show(tx)}; leave tx out to send without one`
  if (what === undefined) return undefined
  return new MillraceError('MILLRACE_FOREIGN_TRANSACTION', `send: tx: ${what}; nothing was stored`)
}

function foreign(transport: Transport, outbox: Outbox | undefined): MillraceError {
  const reach = outbox
    ? `transport ${transport.name} and outbox ${outbox.name}`
    : `transport ${transport.name}`
  return new MillraceError(
    'MILLRACE_FOREIGN_TRANSACTION',
    `send: tx belongs to another database than ${reach}; nothing was stored, ` +
      'put an outbox (postgresOutbox, sqliteOutbox) into the database of that transaction',
  )
}
