import type { ShedOptions } from '../../transport/transport.ts'
import { needQueue, query, type Store } from './store.ts'

/** In one statement: what is chosen is gone, or on the shelf, when it ends. Nothing waits for what others hold. */
export async function shed(store: Store, name: string, options: ShedOptions): Promise<number> {
  const { max, upTo, reason, signal } = options
  const queueId = await needQueue(store, name)
  const params = [queueId, upTo, max, reason?.replaceAll('\0', '') ?? null]
  const [row] = await query(store, store.sql.SHED, params, { signal })
  return Number(row?.n ?? 0)
}
