import type { Row, SqliteHandle } from '../../sql/executor.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import { firstStep } from '../../sql/sqlite-step.ts'
import type { Browse, Gauge, StoredMessage } from '../../transport/transport.ts'
import { givePlaces } from './fair-places.ts'
import { advance, advanceLeaderless } from './keys.ts'
import { envelopeOf, historyOf } from './row.ts'
import {
  ADD_TO_TOTAL,
  CANCEL,
  DROP_WAITING,
  GAUGE,
  GET_MESSAGE,
  PURGEABLE,
  SET_PAUSED,
} from './statements.ts'
import { needQueue, type Store } from './store.ts'

/** Rows removed in one transaction; others get the lock in between. */
const PURGE_STEP = 5_000
/** Those behind others of their key first, so that few of them move up only to be removed. */
const PURGED_STATES: readonly number[] = [4, 0, -1, 1, 3]

export function browse(store: Store): Browse {
  const { handle, clock } = store
  return {
    gauge: (name) =>
      store.look(() => {
        const now = clock.now()
        needQueue(handle, name)
        return gaugeOf(asRow(prepared(handle, GAUGE).get(now, now, name)), now)
      }),
    get: (name, id) =>
      store.look(() => {
        const found = prepared(handle, GET_MESSAGE).get(needQueue(handle, name).id, id)
        return found === undefined ? undefined : storedMessage(asRow(found), clock.now())
      }),
    async cancel(name, id) {
      const isGone = await store.write(() => cancel(handle, name, id, clock.now()))
      if (isGone) store.bell.ring()
      return isGone
    },
    async setPaused(name, paused) {
      const queueId = await store.write(() => {
        const { id } = needQueue(handle, name)
        prepared(handle, SET_PAUSED).run(paused ? 1 : 0, id)
        return id
      })
      store.bell.ring(queueId)
    },
    purge: (name) => purge(store, name),
  }
}

function cancel(handle: SqliteHandle, name: string, id: string, now: number): boolean {
  const queue = needQueue(handle, name)
  const removed = prepared(handle, CANCEL).all(queue.id, id)[0]
  if (removed === undefined) return false
  prepared(handle, ADD_TO_TOTAL).run(-1, queue.id)
  const { ordering_key: key } = asRow(removed)
  if (typeof key === 'string') advance(handle, { queueId: queue.id, key }, now)
  givePlaces(handle, queue.id)
  return true
}

async function purge(store: Store, name: string): Promise<number> {
  let all = 0
  for (const state of PURGED_STATES) {
    for (let isOver = false; !isOver; ) {
      const step = await store.write(() => purgeStep(store, name, state))
      all += step.removed
      isOver = step.isLast
    }
  }
  store.bell.ring()
  return all
}

interface PurgeStep {
  readonly removed: number
  /** It left nothing that was there: what comes meanwhile does not make a purge endless. */
  readonly isLast: boolean
}

function purgeStep({ handle, clock }: Store, name: string, state: number): PurgeStep {
  const queue = needQueue(handle, name)
  const found = prepared(handle, PURGEABLE).all(queue.id, state, PURGE_STEP).map(asRow)
  const step = firstStep(found, PURGE_STEP, ({ bytes }) => asNumber(bytes))
  for (const { seq } of step) prepared(handle, DROP_WAITING).run(seq)
  const removed = step.length
  const isLast = removed === found.length && removed < PURGE_STEP
  if (removed === 0) return { removed, isLast }
  prepared(handle, ADD_TO_TOTAL).run(-removed, queue.id)
  // What was sent behind a head since then must not wait for it for ever.
  advanceLeaderless(handle, queue.id, clock.now())
  givePlaces(handle, queue.id)
  return { removed, isLast }
}

/** What fell due counts as ready, whether or not a receive has moved it already. */
function gaugeOf(row: Row, now: number): Gauge {
  const scheduled = asNumber(row.scheduled)
  const inFlight = asNumber(row.in_flight)
  return {
    depth: Math.max(0, asNumber(row.total) - scheduled - inFlight),
    scheduled,
    inFlight,
    dead: asNumber(row.dead),
    ageMs: Math.max(0, now - asNumber(row.oldest_at)),
    paused: row.paused === 1,
  }
}

function storedMessage(row: Row, now: number): StoredMessage {
  const readyAt = asNumber(row.ready_at)
  const waits = row.state === 1 && readyAt > now
  return {
    envelope: envelopeOf(row),
    state: waits ? 'scheduled' : row.state === 2 ? 'in flight' : 'ready',
    sentAt: asNumber(row.sent_at),
    readyAt,
    history: historyOf(row),
  }
}
