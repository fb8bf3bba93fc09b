import type { Row } from '../../sql/executor.ts'
import type { Browse, Gauge, StoredMessage } from '../../transport/transport.ts'
import { envelopeOf, historyOf, momentOf } from './row.ts'
import { news } from './send.ts'
import { needQueue, query, type Store } from './store.ts'

/** Rows removed in one transaction. */
const PURGE_STEP = 5_000
/** Those behind others of their key first, so that few of them move up only to be removed. */
const PURGED_STATES: readonly number[] = [4, 0, -1, 1, 3]

export function browse(store: Store): Browse {
  const { sql } = store
  return {
    async gauge(name) {
      const [row] = await query(store, sql.GAUGE, [await needQueue(store, name)])
      return gaugeOf(row ?? {})
    },
    async get(name, id) {
      const queueId = await needQueue(store, name)
      if (id.includes('\0')) return undefined
      const [row] = await query(store, sql.GET_MESSAGE, [queueId, id])
      return row === undefined ? undefined : storedMessage(row)
    },
    async cancel(name, id) {
      const queueId = await needQueue(store, name)
      if (id.includes('\0')) return false
      const isGone = (await query(store, sql.CANCEL, [queueId, id])).length > 0
      if (isGone) news(store, queueId)
      return isGone
    },
    async setPaused(name, paused) {
      const queueId = await needQueue(store, name)
      await query(store, sql.SET_PAUSED, [queueId, paused])
      news(store, queueId)
    },
    async purge(name) {
      const queueId = await needQueue(store, name)
      let removed = 0
      for (const state of PURGED_STATES) {
        for (let step = PURGE_STEP; step === PURGE_STEP; removed += step) {
          const [row] = await query(store, sql.PURGE, [queueId, state, PURGE_STEP])
          step = Number(row?.n ?? 0)
        }
      }
      return removed
    },
  }
}

/** What fell due counts as ready, whether or not a receive has moved it already. */
function gaugeOf(row: Row): Gauge {
  return {
    depth:
      Number(row.ready) +
      Number(row.fair) +
      Number(row.quarantined) +
      Number(row.behind) +
      Number(row.due),
    scheduled: Number(row.scheduled),
    inFlight: Number(row.in_flight),
    dead: Number(row.dead),
    ageMs: row.age_ms === null ? 0 : Math.max(0, Math.round(Number(row.age_ms))),
    paused: row.paused === true,
  }
}

function storedMessage(row: Row): StoredMessage {
  const waits = row.state === 1 && row.waits === true
  return {
    envelope: envelopeOf(row),
    state: waits ? 'scheduled' : row.state === 2 ? 'in flight' : 'ready',
    sentAt: momentOf(row.sent_at),
    readyAt: momentOf(row.ready_at),
    history: historyOf(row),
  }
}
