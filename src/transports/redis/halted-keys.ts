import { texts } from '../../redis/shelf-place.ts'
import type { Reply } from '../../redis/wire.ts'
import type { HaltedKey, HaltedKeys } from '../../transport/halted-keys.ts'
import { scripts } from './script.ts'
import { needQueue, run, type Store } from './store.ts'

/** Keys that one script lets go on. */
const STEP = 500

export function haltedKeys(store: Store): HaltedKeys {
  return {
    async list(name, { limit, after }) {
      const queue = await needQueue(store, name)
      const from = after === undefined ? '-' : `(${after}`
      const reply = await run(store, scripts.LIST_HALTED, queue, [from, String(limit)])
      return Array.isArray(reply) ? reply.map(haltedKey) : []
    },
    async get(name, key) {
      const reply = await run(store, scripts.GET_HALTED, await needQueue(store, name), [key])
      return Array.isArray(reply) ? haltedKey(reply) : undefined
    },
    async skip(name, keys, { actor, reason }) {
      const queue = await needQueue(store, name)
      const skipped: string[] = []
      const wanted = [...new Set(keys)]
      for (let at = 0; at < wanted.length; at += STEP) {
        const args = [actor, reason, ...wanted.slice(at, at + STEP)]
        skipped.push(...texts(await run(store, scripts.SKIP_KEYS, queue, args)))
      }
      if (skipped.length > 0) store.bell.ring(name)
      return skipped
    },
  }
}

function haltedKey(reply: Reply): HaltedKey {
  const [key, messageId, haltedAt, waiting] = Array.isArray(reply) ? reply : []
  return {
    key: String(key),
    messageId: String(messageId),
    haltedAt: Number(haltedAt),
    waiting: Number(waiting),
  }
}
