import type { DeadLetter } from '../../model/dead-letter.ts'
import { errorClassOf } from '../../model/history.ts'
import type { Row } from '../../sql/executor.ts'
import { bytesArray, numberArray, textArray } from '../../sql/pg-array.ts'
import { withBodies } from '../../sql/pg-page.ts'
import type { StoredShelf } from '../../store/stored-shelf.ts'
import { MOMENT_MAX_MS } from '../../transport/refusal.ts'
import { PAGE_BYTES_MAX, pageOf, startOf } from '../../transport/shelf-page.ts'
import type { AuditEntry, AuditNote, ShelfFilter } from '../../transport/transport.ts'
import { envelopeFrom, envelopeText, letterFrom, letterText } from '../stored-message.ts'
import { type Database, momentOf } from './database.ts'

export function postgresShelf({ sql, query }: Database): StoredShelf {
  return {
    async put(batch) {
      await query(sql.PUT_LETTERS, columns(batch))
    },
    async list(queue, options) {
      const { errorClass, limit, bodies = true } = options
      const start = startOf(options)
      const place = [before(options), momentParam(start.deadAt), start.id, limit + 1]
      const ofClass = errorClass === undefined ? [] : [errorClass]
      const all = bodies ? sql.LIST_LETTERS : sql.LIST_LETTERS_BARE
      const some = bodies ? sql.LIST_LETTERS_OF_CLASS : sql.LIST_LETTERS_BARE_OF_CLASS
      const params = [queue, ...place, ...(bodies ? [PAGE_BYTES_MAX] : []), ...ofClass]
      const rows = await query(errorClass === undefined ? all : some, params)
      return pageOf(rows.map(deadLetterOf), bodies ? withBodies(rows, limit) : limit)
    },
    async get(queue, id) {
      const [row] = await query(sql.GET_LETTER, [queue, id])
      return row && deadLetterOf(row)
    },
    async count(queue, filter) {
      const { errorClass } = filter
      const [row] =
        errorClass === undefined
          ? await query(sql.COUNT_LETTERS, [queue, before(filter)])
          : await query(sql.COUNT_LETTERS_OF_CLASS, [queue, before(filter), errorClass])
      return Number(row?.n ?? 0)
    },
    async redriven(queue, letters, note) {
      const ids = letters.map(({ id }) => id)
      const deaths = numberArray(letters.map(({ deadAt }) => deadAt))
      const params = [queue, textArray(ids), deaths, ...noteParams(note)]
      return asGiven(ids, await query(sql.REDRIVEN, params))
    },
    async discard(queue, ids, note) {
      const params = [queue, textArray(ids), ...noteParams(note)]
      return asGiven(ids, await query(sql.DISCARD, params))
    },
    audit: async (queue, limit) => (await query(sql.LIST_AUDIT, [queue, limit])).map(auditEntry),
  }
}

function columns(batch: readonly Omit<DeadLetter, 'deadAt'>[]): readonly string[] {
  const places = batch.map((letter) => [`${letter.queue}\n${letter.envelope.id}`, letter] as const)
  const last = [...new Map(places).values()]
  return [
    textArray(last.map(({ queue }) => queue)),
    textArray(last.map(({ envelope }) => envelope.id)),
    textArray(last.map(({ errorClass }) => errorClass)),
    textArray(last.map(letterText)),
    textArray(last.map(({ envelope }) => envelopeText(envelope))),
    bytesArray(last.map(({ envelope }) => envelope.body)),
  ]
}

/** Those of the ids that have a row, in the order of the ids. */
function asGiven(ids: readonly string[], rows: readonly Row[]): readonly string[] {
  const found = new Set(rows.map(({ id }) => id))
  return ids.filter((id) => found.has(id))
}

function before({ deadBefore = MOMENT_MAX_MS }: ShelfFilter): number {
  return momentParam(deadBefore)
}

function momentParam(moment: number): number {
  return Math.min(MOMENT_MAX_MS, Math.max(0, moment))
}

/** Text that Postgres takes: NUL and half characters become U+FFFD. */
function noteParams({ actor, reason }: AuditNote): readonly string[] {
  return [actor, reason].map((text) => text.toWellFormed().replaceAll('\0', '\ufffd'))
}

function deadLetterOf({ queue, id, dead_at, error_class, letter, message, body }: Row): DeadLetter {
  return {
    ...letterFrom(String(letter)),
    envelope: envelopeFrom(String(id), String(message), body),
    queue: String(queue),
    errorClass: errorClassOf(error_class),
    deadAt: momentOf(dead_at),
  }
}

function auditEntry(row: Row): AuditEntry {
  return {
    at: momentOf(row.at),
    act: row.act === 'discard' ? 'discard' : 'redrive',
    queue: String(row.queue),
    messageId: String(row.message_id),
    actor: String(row.actor),
    reason: String(row.reason),
  }
}
