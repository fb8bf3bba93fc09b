import type { Row, SqliteHandle } from '../../sql/executor.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import { firstStep } from '../../sql/sqlite-step.ts'
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

/** What a transaction chooses is gone, or on the shelf, when it ends; large ones take several. */
export async function shed(store: Store, name: string, options: ShedOptions): Promise<number> {
  const { signal, max } = options
  let all = 0
  for (let isOver = false; !isOver && all < max; ) {
    const left = { ...options, max: max - all }
    const step = await store.write(() => shedStep(store, name, left), { signal })
    all += step.removed
    isOver = step.isLast
  }
  return all
}

interface ShedStep {
  readonly removed: number
  readonly isLast: boolean
}

function shedStep({ handle, clock }: Store, name: string, options: ShedOptions): ShedStep {
  const { max, reason } = options
  const queue = needQueue(handle, name)
  const chosen = chosenIn(handle, queue.id, options)
  const step = firstStep(chosen, max, ({ bytes }) => asNumber(bytes))
  for (const { seq } of step) {
    if (reason !== undefined) prepared(handle, BURY_WAITING).run(clock.now(), reason, seq)
    prepared(handle, DROP_WAITING).run(seq)
  }
  const removed = step.length
  if (removed > 0) prepared(handle, ADD_TO_TOTAL).run(-removed, queue.id)
  return { removed, isLast: removed === chosen.length }
}

/** In the order in which they go. */
function chosenIn(
  handle: SqliteHandle,
  queueId: number,
  { max, upTo }: ShedOptions,
): readonly Row[] {
  const chosen: Row[] = []
  const choose = (sql: string, ...params: readonly number[]): void => {
    const left = max - chosen.length
    if (left > 0)
      chosen.push(
        ...prepared(handle, sql)
          .all(queueId, ...params, left)
          .map(asRow),
      )
  }
  for (let priority = 0; priority <= upTo; priority++) {
    choose(SHED_READY, priority)
    choose(SHED_FAIR, priority)
  }
  choose(SHED_SCHEDULED, upTo)
  return chosen
}
