import type { Row } from '../../sql/executor.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import type { DelayedMessages, DueMessage, TakenMessage } from '../../store/delayed-messages.ts'
import { envelopeFrom, envelopeText } from '../stored-message.ts'
import type { Database } from './database.ts'
import {
  COUNT_DELAYED,
  GET_DELAYED,
  HAS_OPEN,
  LIST_OPEN,
  NEXT_OPEN,
  PUT_DELAYED,
  REMOVE_DELAYED,
  REMOVE_SENT,
  REMOVE_TAKEN,
  TAKE_DELAYED,
} from './statements.ts'

export function sqliteDelayed({ handle, now, read, write }: Database): DelayedMessages {
  const take = (queue: string, max: number, leaseMs: number): readonly TakenMessage[] => {
    const at = now()
    const rows = prepared(handle, LIST_OPEN).all(queue, at, max).map(asRow)
    for (const { seq } of rows) prepared(handle, TAKE_DELAYED).run(at + leaseMs, seq)
    return rows.map(takenMessage).sort((a, b) => a.dueAt - b.dueAt || Number(a.placed - b.placed))
  }
  return {
    put: (queue, batch) =>
      write(() => {
        const at = now()
        for (const { envelope, delayMs } of batch) {
          const { id, body } = envelope
          const dueAt = at + delayMs
          prepared(handle, REMOVE_TAKEN).run(queue, id)
          const values = [id, dueAt, dueAt, envelopeText(envelope), body]
          prepared(handle, PUT_DELAYED).run(queue, ...values)
        }
      }),
    async take(queue, { max, leaseMs }) {
      // Most looks find nothing, and need no write lock for it.
      const found = await read(() => prepared(handle, HAS_OPEN).get(queue, now()))
      return found === undefined ? [] : await write(() => take(queue, max, leaseMs))
    },
    sent: (queue, taken) =>
      write(() => {
        for (const { envelope, placed } of taken) {
          prepared(handle, REMOVE_SENT).run(queue, envelope.id, Number(placed))
        }
      }),
    remove: (queue, ids) =>
      write(() =>
        ids.filter((id) => Number(prepared(handle, REMOVE_DELAYED).run(queue, id).changes) > 0),
      ),
    get: (queue, id) =>
      read(() => {
        const found = prepared(handle, GET_DELAYED).get(queue, id)
        return found === undefined ? undefined : dueMessage(asRow(found))
      }),
    count: (queue) => read(() => asNumber(asRow(prepared(handle, COUNT_DELAYED).get(queue)).n)),
    nextDueMs: (queue) =>
      read(() => {
        const { open_at } = asRow(prepared(handle, NEXT_OPEN).get(queue))
        return open_at === null ? undefined : Math.max(0, asNumber(open_at) - now())
      }),
  }
}

function dueMessage(row: Row): DueMessage {
  return {
    envelope: envelopeFrom(String(row.id), String(row.message), row.body),
    dueAt: asNumber(row.due_at),
  }
}

function takenMessage(row: Row): TakenMessage {
  return { ...dueMessage(row), placed: BigInt(asNumber(row.seq)) }
}
