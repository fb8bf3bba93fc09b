import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import type { ShedOptions } from '../../transport/transport.ts'
import {
  ADD_TO_TOTAL,
  BURY_WAITING,
  DROP_WAITING,
  SHED_FAIR,
  SHED_READY,
  SHED_SCHEDULED,
} from './statements.ts'
import { needQueue, type Store } from './store.ts'

/** In one transaction: what is chosen is gone, or on the shelf, when it ends. */
export function shed(store: Store, name: string, options: ShedOptions): Promise<number> {
  const { signal } = options
  return store.write(() => shedNow(store, name, options), { signal })
}

function shedNow({ handle, clock }: Store, name: string, options: ShedOptions): number {
  const { max, upTo, reason } = options
  const queue = needQueue(handle, name)
  const chosen: number[] = []
  const choose = (sql: string, ...params: readonly number[]): void => {
    const left = max - chosen.length
    if (left <= 0) return
    for (const row of prepared(handle, sql).all(queue.id, ...params, left)) {
      chosen.push(asNumber(asRow(row).seq))
    }
  }
  for (let priority = 0; priority <= upTo; priority++) {
    choose(SHED_READY, priority)
    choose(SHED_FAIR, priority)
  }
  choose(SHED_SCHEDULED, upTo)
  for (const seq of chosen) {
    if (reason !== undefined) prepared(handle, BURY_WAITING).run(clock.now(), reason, seq)
    prepared(handle, DROP_WAITING).run(seq)
  }
  if (chosen.length > 0) prepared(handle, ADD_TO_TOTAL).run(-chosen.length, queue.id)
  return chosen.length
}
