import { call } from '../../redis/call.ts'
import type { Reply } from '../../redis/wire.ts'
import { type Entry, entryOf, plainEntry } from './entry.ts'
import type { QueueKeys } from './keys.ts'
import type { Store } from './store.ts'

/** What the answer of CLAIM hands out: kind, fence, entry ids, ids, and from here one item for each message. */
const ITEMS_AT = 4
const SUSPECT = 3

/** Answers at once but for a batch with an id that our senders would be refused: one with a line break. */
export function readEntries(
  store: Store,
  queue: QueueKeys,
  reply: readonly Reply[],
): readonly Entry[] | Promise<readonly Entry[]> {
  const entryIds = String(reply[2]).split('\n')
  const ids = String(reply[3]).split('\n')
  if (ids.length !== entryIds.length) {
    return readAgain(store, queue.all[reply[0] === SUSPECT ? 2 : 1] ?? '', entryIds)
  }
  return entryIds.map((entryId, n) => {
    const item = reply[ITEMS_AT + n] ?? []
    return Buffer.isBuffer(item)
      ? plainEntry(entryId, ids[n] ?? entryId, item)
      : entryOf(entryId, item)
  })
}

/** One by one: which id is whose cannot be told from the lines. */
async function readAgain(
  store: Store,
  stream: string,
  entryIds: readonly string[],
): Promise<readonly Entry[]> {
  const all: Entry[] = []
  for (const entryId of entryIds) {
    const found = await call(store, stream, ['XRANGE', stream, entryId, entryId], { bytes: true })
    const [entry] = Array.isArray(found) ? found : []
    all.push(entryOf(entryId, Array.isArray(entry) ? entry[1] : []))
  }
  return all
}
