import { storedKey } from '../inbox/key.ts'
import { chain, type MaybePromise } from '../model/maybe-promise.ts'
import { checkVersionOptions, type VersionOptions } from './options.ts'
import { statesIn } from './state-in.ts'
import { entityKey, versionOf } from './version.ts'

/** What became of one message. */
export type Applied<T> =
  | { readonly applied: true; readonly value: T }
  /** The same version or a newer one of its key was applied before; the effect was not called. */
  | { readonly applied: false }

/** Turns an effect into one for `ctx.tx` that is called only for a version newer than all before. */
export type LatestOnly<Payload> = <Tx, T>(
  message: { readonly payload: Payload },
  effect: (tx: Tx) => MaybePromise<T>,
) => (tx: Tx) => MaybePromise<Applied<T>>

/**
 * For consumers that need the newest state of a key and not each step to it, without an order by key: messages are handled in any
 * order and side by side, and one that is older than what was applied changes nothing and is acked. The newest version of each
 * key is kept in the inbox's tables, in the transaction of the effect.
 *
 * @example
 * const newest = latestOnly({ queue: prices, key: (p) => p.sku, version: (p) => p.revision })
 * app.work(prices, async (message, ctx) => {
 *   await ctx.tx(newest(message, (tx) => { tx.prepare(UPSERT).run(message.payload.sku, message.payload.cents) }))
 * })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function latestOnly<Payload>(options: VersionOptions<Payload>): LatestOnly<Payload> {
  checkVersionOptions('latestOnly', options)
  const { name } = options.queue
  const stateIn = statesIn(name, options.schema ?? 'millrace')
  return ({ payload }, effect) =>
    (tx) => {
      const entity = { queue: name, key: storedKey(entityKey(options.key(payload), name)) }
      const version = versionOf(options.version(payload), name)
      return chain(stateIn(tx).applyNewer(entity, version), (newer) =>
        newer
          ? chain(effect(tx), (value) => ({ applied: true, value }) as const)
          : ({ applied: false } as const),
      )
    }
}
