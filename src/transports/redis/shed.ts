import type { ShedOptions } from '../../transport/transport.ts'
import { scripts } from './script.ts'
import { needQueue, run, type Store } from './store.ts'

/** In one script: what is chosen is gone, or on the shelf, when it ends. */
export async function shed(store: Store, name: string, options: ShedOptions): Promise<number> {
  const { max, upTo, reason, signal } = options
  const queue = await needQueue(store, name)
  // One script holds up the server for as long as it runs.
  const most = String(Math.min(max, STEP))
  const args = [queue.group, most, String(upTo), ...(reason === undefined ? [] : [reason])]
  return Number(await run(store, scripts.SHED, queue, args, { signal }))
}

const STEP = 500
