import { watchedStore } from '../layers/watched-store.ts'
import { messageOfError } from '../model/describe-error.ts'
import { hasCode } from '../model/errors.ts'
import type { Store } from '../store/store.ts'
import type { SwappedStates } from '../store/swapped-states.ts'
import type { Connector } from '../transport/transport.ts'
import type { ResolvedOptions } from './millrace-options.ts'
import { isStoring } from './own-store.ts'

/**
 * Where consumers that their kill switch stopped hear that somebody resumed their queue: the app's store, else the transport's own, which is
 * opened when it is first needed. A switch that never trips needs no tables.
 */
export interface ResumeStore {
  /** For a consumer that is stopped. Undefined: nobody but its own process can tell it. */
  readonly heard: Pick<Store, 'states'> | undefined
  /** For who resumes. Undefined: nobody can be listening there. Rejects with what the store threw. */
  tell(): Promise<Store | undefined>
  close(): Promise<void>
}

export interface ResumeStoreOptions {
  /** Of the app. */
  readonly store: Store | undefined
  /** Its connector may have a store of its own. */
  readonly from: Connector
  readonly resolved: ResolvedOptions
  /** Fires when the app ends. */
  readonly closed: AbortSignal
}

type Migrate = ResolvedOptions['migrate']

const CONNECT_MAX_MS = 10_000
const GIVE_STORE = 'give createMillrace a store'
const MAKE_TABLES =
  'millrace migrate makes these tables where the config file has the worker with its killSwitch, or a store'

export function resumeStore({ store, from, resolved, closed }: ResumeStoreOptions): ResumeStore {
  if (store !== undefined) {
    return { heard: store, tell: async () => store, close: async () => undefined }
  }
  if (!isStoring(from)) {
    return { heard: undefined, tell: async () => undefined, close: async () => undefined }
  }
  const { clock, logger } = resolved
  /** One for who makes what is missing, and one for who does not: the failure of this is none of that. */
  const openings = new Map<Migrate, Promise<Store>>()
  let hasWarned = false

  const connected = async (migrate: Migrate): Promise<Store> => {
    const late = new AbortController()
    const cancel = clock.after(CONNECT_MAX_MS, () => late.abort(new Error('it did not answer')))
    try {
      const signal = AbortSignal.any([closed, late.signal])
      const connector = from.ownStore()
      return watchedStore(await connector.connect({ ...resolved, migrate, signal }), clock)
    } finally {
      cancel()
    }
  }
  /** One that failed is tried anew by the next who needs it. */
  const opened = (migrate: Migrate): Promise<Store> => {
    const before = openings.get('auto') ?? openings.get(migrate)
    if (before !== undefined) return before
    const opening = connected(migrate).catch((error: unknown) => {
      openings.delete(migrate)
      throw error
    })
    openings.set(migrate, opening)
    return opening
  }
  const listening = async (): Promise<SwappedStates> => {
    try {
      return (await opened(resolved.migrate)).states
    } catch (error) {
      if (!hasWarned && !closed.aborted) {
        const what = 'a consumer that its kill switch stopped hears of no resume by other processes'
        const help = hasCode(error, 'MILLRACE_SCHEMA_OUTDATED') ? MAKE_TABLES : GIVE_STORE
        logger.warn(`${what} (${messageOfError(error)}); ${help}`)
      }
      hasWarned = true
      throw error
    }
  }
  return {
    heard: {
      states: {
        read: async (name) => (await listening()).read(name),
        swap: async (...given) => (await listening()).swap(...given),
      },
    },
    tell: async () => {
      try {
        return await opened('check')
      } catch (error) {
        // Whoever listens has made the tables.
        if (hasCode(error, 'MILLRACE_SCHEMA_OUTDATED')) return undefined
        throw error
      }
    },
    close: async () => {
      const found = await Promise.allSettled(openings.values())
      for (const one of found) if (one.status === 'fulfilled') await one.value.close()
    },
  }
}
