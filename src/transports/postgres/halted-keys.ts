import type { Row } from '../../sql/executor.ts'
import { textArray } from '../../sql/pg-array.ts'
import type { HaltedKey, HaltedKeys } from '../../transport/halted-keys.ts'
import { momentOf, storableText } from './row.ts'
import { news } from './send.ts'
import { needQueue, query, type Store } from './store.ts'

export function haltedKeys(store: Store): HaltedKeys {
  const { sql } = store
  return {
    // No key is empty, so all come after the empty text.
    async list(name, { limit, after = '' }) {
      const params = [await needQueue(store, name), storableText(after), limit]
      return (await query(store, sql.LIST_HALTED, params)).map(haltedKey)
    },
    async get(name, key) {
      const queueId = await needQueue(store, name)
      if (key.includes('\0')) return undefined
      const [row] = await query(store, sql.GET_HALTED, [queueId, key])
      return row && haltedKey(row)
    },
    async skip(name, keys, { actor, reason }) {
      const queueId = await needQueue(store, name)
      const wanted = keys.filter((key) => !key.includes('\0'))
      const params = [queueId, textArray(wanted), storableText(actor), storableText(reason)]
      const skipped = (await query(store, sql.SKIP_KEYS, params)).map((row) => String(row.key))
      if (skipped.length > 0) news(store, queueId)
      return skipped
    },
  }
}

function haltedKey(row: Row): HaltedKey {
  return {
    key: String(row.key),
    messageId: String(row.halted_by),
    haltedAt: momentOf(row.halted_at),
    waiting: Number(row.waiting),
  }
}
