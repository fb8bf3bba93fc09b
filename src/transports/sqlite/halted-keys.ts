import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import type { HaltedKey, HaltedKeys } from '../../transport/halted-keys.ts'
import { givePlaces } from './fair-places.ts'
import { GET_HALTED, LIST_HALTED } from './key-statements.ts'
import { advance, unhalt } from './keys.ts'
import { ADD_AUDIT } from './statements.ts'
import { needQueue, type Store } from './store.ts'

export function haltedKeys(store: Store): HaltedKeys {
  const { handle, clock } = store
  const find = (queueId: number, key: string): HaltedKey | undefined => {
    const found = prepared(handle, GET_HALTED).get(queueId, key)
    return found === undefined ? undefined : haltedKey(found)
  }
  return {
    // No key is empty, so all come after the empty text.
    list: (name, { limit, after = '' }) =>
      store.look(() =>
        prepared(handle, LIST_HALTED).all(needQueue(handle, name).id, after, limit).map(haltedKey),
      ),
    get: (name, key) => store.look(() => find(needQueue(handle, name).id, key)),
    async skip(name, keys, { actor, reason }) {
      const skipped = await store.write(() => {
        const { id: queueId } = needQueue(handle, name)
        const now = clock.now()
        const gone = [...new Set(keys)].filter((key) => {
          const halted = find(queueId, key)
          if (halted === undefined || !unhalt(handle, { queueId, key }, halted.messageId))
            return false
          advance(handle, { queueId, key }, now)
          prepared(handle, ADD_AUDIT).run(queueId, halted.messageId, now, 'skip', actor, reason)
          return true
        })
        givePlaces(handle, queueId)
        return gone
      })
      store.bell.ring()
      return skipped
    },
  }
}

function haltedKey(found: unknown): HaltedKey {
  const row = asRow(found)
  return {
    key: String(row.ordering_key),
    messageId: String(row.message_id),
    haltedAt: asNumber(row.halted_at),
    waiting: asNumber(row.waiting),
  }
}
