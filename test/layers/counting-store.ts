import type { Store } from '../../src/store/store.ts'

/** A store that writes down the names of its calls, and fails those that `fails` says. */
export interface CountingStore {
  readonly store: Store
  readonly calls: string[]
  fails: (call: string) => boolean
}

export function countingStore(inner: Store): CountingStore {
  const calls: string[] = []
  const counting: CountingStore = { store: inner, calls, fails: () => false }
  const counted = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get: (target, name, receiver) => {
        const act: unknown = Reflect.get(target, name, receiver)
        if (typeof act !== 'function') return act
        return async (...given: readonly unknown[]): Promise<unknown> => {
          calls.push(String(name))
          if (counting.fails(String(name))) throw new Error('the store is away')
          return act.apply(target, given)
        }
      },
    })
  const store: Store = {
    ...inner,
    keys: counted(inner.keys),
    delayed: counted(inner.delayed),
    shelf: counted(inner.shelf),
    journal: counted(inner.journal),
    diagnose: (cause) => ({ code: 'unavailable', retryable: true, outcome: 'unknown', cause }),
  }
  return {
    ...counting,
    store,
    get fails() {
      return counting.fails
    },
    set fails(next) {
      counting.fails = next
    },
  }
}
