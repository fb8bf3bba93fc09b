import { MillraceError } from '../../src/model/errors.ts'
import type { Store } from '../../src/store/store.ts'

/** Only looked at by the kit and by tests, which want to see what is there. */
const LOOKS: readonly (string | symbol)[] = ['count', 'list']

/** A store whose calls fail now and then: before anything was done, or after all of it was. */
export function faultyStore(store: Store, random: () => number, rate: number): Store {
  const away = (): MillraceError =>
    new MillraceError('MILLRACE_UNAVAILABLE', 'injected fault of the store', { retryable: true })
  const weaken = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get: (target, name, receiver) => {
        const act: unknown = Reflect.get(target, name, receiver)
        if (typeof act !== 'function' || LOOKS.includes(name)) return act
        return async (...given: readonly unknown[]) => {
          const draw = random()
          if (draw < rate / 2) throw away()
          const answer: unknown = await act.apply(target, given)
          if (draw < rate) throw away()
          return answer
        }
      },
    })
  return {
    ...store,
    keys: weaken(store.keys),
    delayed: weaken(store.delayed),
    shelf: weaken(store.shelf),
    journal: weaken(store.journal),
    leases: weaken(store.leases),
    diagnose: (error) =>
      error instanceof MillraceError && error.retryable
        ? { code: 'unavailable', retryable: true, outcome: 'unknown', cause: error }
        : store.diagnose(error),
  }
}
