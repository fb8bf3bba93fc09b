import { MillraceError } from '../../src/model/errors.ts'
import type { Store } from '../../src/store/store.ts'
import type { Transport } from '../../src/transport/transport.ts'

/** What ends without a word, as a killed process does. */
export interface Mortal<Thing> {
  readonly thing: Thing
  die(): void
}

/** Of a transport under layers: it renews, settles and receives nothing more, and gives nothing back. */
export function mortal(inner: Transport): Mortal<Transport> {
  const life = living()
  const transport: Transport = {
    ...inner,
    send: life.while(inner.send),
    subscribe: async (queue, options) => {
      const subscription = await inner.subscribe(queue, options)
      const { renew } = subscription
      return {
        ...subscription,
        receive: life.while(subscription.receive),
        settle: life.while(subscription.settle),
        ...(renew && { renew: life.while(renew) }),
      }
    },
    diagnose: (error) => life.fault(error) ?? inner.diagnose(error),
  }
  return { thing: transport, die: life.end }
}

/** Of the connection to a store: what its process would still write is never written. */
export function mortalStore(store: Store): Mortal<Store> {
  const life = living()
  const part = <Part extends object>(of: Part): Part =>
    new Proxy(of, {
      get: (target, name, receiver) => {
        const act: unknown = Reflect.get(target, name, receiver)
        if (typeof act !== 'function') return act
        return life.while(
          async (...given: readonly unknown[]): Promise<unknown> => act.apply(target, given),
        )
      },
    })
  const thing = {
    ...store,
    keys: part(store.keys),
    delayed: part(store.delayed),
    shelf: part(store.shelf),
    journal: part(store.journal),
    leases: part(store.leases),
    states: part(store.states),
    diagnose: (error: unknown) => life.fault(error) ?? store.diagnose(error),
  }
  return { thing, die: life.end }
}

function living() {
  let isDead = false
  const death = new MillraceError('MILLRACE_UNAVAILABLE', 'this process is gone', {
    retryable: true,
  })
  return {
    end: () => {
      isDead = true
    },
    while:
      <Given extends readonly unknown[], Answer>(act: (...given: Given) => Promise<Answer>) =>
      async (...given: Given): Promise<Answer> => {
        if (isDead) throw death
        return act(...given)
      },
    fault: (error: unknown) =>
      error === death
        ? ({ code: 'unavailable', retryable: true, outcome: 'unknown' } as const)
        : undefined,
  }
}
