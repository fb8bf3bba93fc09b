import { call } from '../../redis/call.ts'
import type { Reply } from '../../redis/wire.ts'
import { type Entry, entryOf, plainEntry } from './entry.ts'
import type { QueueKeys } from './keys.ts'
import type { Store } from './store.ts'
import { type Place, placeOf, streamOf } from './streams.ts'

/** What the answer of CLAIM hands out: kind, fence, references, ids, and from here one item for each message. */
const ITEMS_AT = 4

/** An entry, and in which stream it is. */
export interface ReadEntry {
  readonly entry: Entry
  readonly mark: string
}

/** Answers at once but for a batch with an id that our senders would be refused: one with a line break. */
export function readEntries(
  store: Store,
  queue: QueueKeys,
  reply: readonly Reply[],
): readonly ReadEntry[] | Promise<readonly ReadEntry[]> {
  const places = String(reply[2]).split('\n').map(placeOf)
  const ids = String(reply[3]).split('\n')
  if (ids.length !== places.length) return readAgain(store, queue, places)
  return places.map(({ mark, entryId }, n) => {
    const item = reply[ITEMS_AT + n] ?? []
    const entry = Buffer.isBuffer(item)
      ? plainEntry(entryId, ids[n] ?? entryId, item)
      : entryOf(entryId, item)
    return { entry, mark }
  })
}

/** One by one: which id is whose cannot be told from the lines. */
async function readAgain(
  store: Store,
  queue: QueueKeys,
  places: readonly Place[],
): Promise<readonly ReadEntry[]> {
  const all: ReadEntry[] = []
  for (const { mark, entryId } of places) {
    const stream = streamOf(queue, mark)
    const found = await call(store, stream, ['XRANGE', stream, entryId, entryId], { bytes: true })
    const [first] = Array.isArray(found) ? found : []
    all.push({ entry: entryOf(entryId, Array.isArray(first) ? first[1] : []), mark })
  }
  return all
}
