import type { Clock } from '../../model/clock.ts'
import type { HaltedKeys } from '../../transport/halted-keys.ts'
import { needQueue, type Store } from './store.ts'

export function haltedKeys(store: Store, clock: Clock, open: () => void): HaltedKeys {
  return {
    async list(name, { limit, after }) {
      open()
      const { halted } = needQueue(store, name)
      const keys = halted.haltedKeys().filter((key) => after === undefined || key > after)
      return keys.slice(0, limit).flatMap((key) => halted.halted(key) ?? [])
    },
    async get(name, key) {
      open()
      return needQueue(store, name).halted.halted(key)
    },
    async skip(name, keys, { actor, reason }) {
      open()
      const queue = needQueue(store, name)
      const now = clock.now()
      const halts = [...new Set(keys)].flatMap((key) => queue.halted.halted(key) ?? [])
      for (const { key, messageId } of halts) {
        queue.skip(key, messageId, now)
        store.audit({ at: now, act: 'skip', queue: name, messageId, actor, reason })
      }
      queue.wake()
      return halts.map(({ key }) => key)
    },
  }
}
