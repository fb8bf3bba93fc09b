import { afterCrash } from '../../model/history.ts'
import { call } from '../../redis/call.ts'
import type { Reply } from '../../redis/wire.ts'
import { entryOf, stateFields } from './entry.ts'
import type { QueueKeys } from './keys.ts'
import { scripts } from './script.ts'
import { run, type Store } from './store.ts'
import { markOf, type Place } from './streams.ts'

/** A sweep ends after this many steps; the next receive goes on. */
const STEPS_MAX = 50
const SCAN_COUNT = '1000'

/**
 * Takes back what vanished holders had: one counted attempt of class crashed, then alone. The new history is computed here,
 * where the rules for it are, and written in a second script: an entry id stands for one handing out, so nothing else can
 * have happened to the message in between but a settlement or a renewal, and both are seen. Answers how many entries were gone.
 */
export async function reclaim(store: Store, queue: QueueKeys): Promise<number> {
  let gone = 0
  for (let step = 0; step < STEPS_MAX; step++) {
    const found = await run(store, scripts.EXPIRED, queue, [queue.group], { bytes: true })
    if (!Array.isArray(found) || found.length <= 1) break
    const args: string[] = [queue.group]
    const now = Number(String(found[0]))
    for (let at = 1; at < found.length; at += 3) {
      const [claim, entryId] = [String(found[at]), String(found[at + 1])]
      const place = { mark: markOf(claim), entryId }
      if (!Array.isArray(found[at + 2])) gone += 1
      args.push(claim, entryId, ...(await quarantined(store, queue, place, found[at + 2], now)))
    }
    await run(store, scripts.RECLAIM, queue, args)
  }
  return gone
}

async function quarantined(
  store: Store,
  queue: QueueKeys,
  { mark, entryId }: Place,
  fields: Reply | undefined,
  now: number,
): Promise<readonly string[]> {
  const gone = !Array.isArray(fields)
  const entry = entryOf(entryId, gone ? [] : fields)
  const id = gone ? ((await idOfLost(store, queue, mark + entryId)) ?? entryId) : entry.envelope.id
  const state = stateFields({
    sentAt: entry.sentAt,
    deliveries: entry.deliveries + 1,
    history: afterCrash(entry.history, now),
    alone: !gone,
  })
  return [id, String(state.length), ...state]
}

/** Which message an entry was of that somebody deleted: slow, and never needed while nobody does so. */
async function idOfLost(
  store: Store,
  queue: QueueKeys,
  reference: string,
): Promise<string | undefined> {
  const ids = queue.all[4] ?? ''
  let cursor = '0'
  do {
    const page = await call(store, ids, ['HSCAN', ids, cursor, 'COUNT', SCAN_COUNT])
    if (!Array.isArray(page)) break
    const [next, pairs] = page
    if (Array.isArray(pairs)) {
      const at = pairs.findIndex((one, n) => n % 2 === 1 && one === reference)
      if (at > 0) return String(pairs[at - 1])
    }
    cursor = String(next)
  } while (cursor !== '0')
  return undefined
}
