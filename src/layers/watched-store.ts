import type { Clock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import { hasCode, MillraceError } from '../model/errors.ts'
import type { Fault } from '../model/fault.ts'
import { read } from '../model/probe.ts'
import type { Store } from '../store/store.ts'

/** A call that takes longer hangs; none of a store has to wait for anything. */
const LATE_MS = 5_000

/**
 * A store that is away says so by its own name: in the errors of its calls, which would pass for the transport's, and in its
 * problems, from the first call that fails until one gets through.
 */
export function watchedStore(store: Store, clock: Clock): Store {
  const faults = new WeakMap<MillraceError, Fault>()
  const begun = new Set<{ readonly at: number }>()
  let away: { readonly since: number; readonly why: string } | undefined

  const named = (cause: unknown): unknown => {
    const fault = store.diagnose(cause)
    if (fault.code !== 'unavailable' || hasCode(cause, 'MILLRACE_CLOSED')) return cause
    const why = messageOfError(cause)
    away = { since: away?.since ?? clock.now(), why }
    const error = new MillraceError(
      'MILLRACE_UNAVAILABLE',
      `the store ${store.name} is away (${why})`,
      {
        cause,
        retryable: fault.retryable,
        fields: { store: store.name },
      },
    )
    faults.set(error, fault)
    return error
  }
  const watch = async (call: () => unknown): Promise<unknown> => {
    const entry = { at: clock.now() }
    begun.add(entry)
    try {
      const answer = await call()
      away = undefined
      return answer
    } catch (error) {
      throw named(error)
    } finally {
      begun.delete(entry)
    }
  }
  const watched = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get: (target, name, receiver) => {
        const act: unknown = Reflect.get(target, name, receiver)
        if (typeof act !== 'function') return act
        return (...given: readonly unknown[]) => watch(() => act.apply(target, given))
      },
    })
  const problem = (since: number, why: string): string =>
    `the store ${store.name} is away since ${new Date(since).toISOString()} (${why})`
  const ownProblems = (): readonly string[] => {
    if (away !== undefined) return [problem(away.since, away.why)]
    const [oldest] = begun
    if (oldest === undefined || clock.now() - oldest.at < LATE_MS) return []
    return [problem(oldest.at, 'it does not answer')]
  }
  return {
    ...store,
    keys: watched(store.keys),
    delayed: watched(store.delayed),
    shelf: watched(store.shelf),
    journal: watched(store.journal),
    leases: watched(store.leases),
    slots: watched(store.slots),
    buckets: watched(store.buckets),
    counters: watched(store.counters),
    states: watched(store.states),
    prune: async (max) => Number(await watch(() => store.prune(max))),
    diagnose: (error) =>
      (error instanceof MillraceError ? faults.get(error) : undefined) ?? store.diagnose(error),
    problems: () => [...ownProblems(), ...(store.problems?.() ?? [])],
  }
}

/** Whether a watched store threw this, and not the transport below its layers. */
export function isOfStore(error: unknown): boolean {
  return (
    hasCode(error, 'MILLRACE_UNAVAILABLE') && read(read(error, 'fields'), 'store') !== undefined
  )
}
