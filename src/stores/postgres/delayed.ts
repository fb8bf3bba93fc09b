import type { Row } from '../../sql/executor.ts'
import { bytesArray, numberArray, textArray } from '../../sql/pg-array.ts'
import type {
  DelayedMessage,
  DelayedMessages,
  DueMessage,
  TakenMessage,
} from '../../store/delayed-messages.ts'
import { envelopeFrom, envelopeText } from '../stored-message.ts'
import { type Database, momentOf } from './database.ts'

export function postgresDelayed({ sql, query }: Database): DelayedMessages {
  return {
    async put(queue, batch) {
      await query(sql.PUT_DELAYED, [queue, ...columns(firstOfEach(batch))])
    },
    async take(queue, { max, leaseMs }) {
      const rows = await query(sql.TAKE_DELAYED, [queue, max, leaseMs])
      return rows.map(takenMessage).sort((a, b) => a.dueAt - b.dueAt || Number(a.placed - b.placed))
    },
    async sent(queue, taken) {
      await query(sql.REMOVE_SENT, [queue, numberArray(taken.map(({ placed }) => placed))])
    },
    async remove(queue, ids) {
      const rows = await query(sql.REMOVE_DELAYED, [queue, textArray(ids)])
      const gone = new Set(rows.map(({ id }) => id))
      return ids.filter((id) => gone.has(id))
    },
    async get(queue, id) {
      const [row] = await query(sql.GET_DELAYED, [queue, id])
      return row && dueMessage(row)
    },
    async count(queue) {
      const [row] = await query(sql.COUNT_DELAYED, [queue])
      return Number(row?.n ?? 0)
    },
    async nextDueMs(queue) {
      const [row] = await query(sql.NEXT_OPEN, [queue])
      return row === undefined || row.none === true ? undefined : Number(row.ms)
    },
  }
}

function firstOfEach(batch: readonly DelayedMessage[]): readonly DelayedMessage[] {
  return [...new Map(batch.toReversed().map((one) => [one.envelope.id, one])).values()]
}

function columns(batch: readonly DelayedMessage[]): readonly string[] {
  return [
    textArray(batch.map(({ envelope }) => envelope.id)),
    numberArray(batch.map(({ delayMs }) => delayMs)),
    textArray(batch.map(({ envelope }) => envelopeText(envelope))),
    bytesArray(batch.map(({ envelope }) => envelope.body)),
  ]
}

function dueMessage(row: Row): DueMessage {
  return {
    envelope: envelopeFrom(String(row.id), String(row.message), row.body),
    dueAt: momentOf(row.due_at),
  }
}

function takenMessage(row: Row): TakenMessage {
  return { ...dueMessage(row), placed: BigInt(String(row.seq)) }
}
