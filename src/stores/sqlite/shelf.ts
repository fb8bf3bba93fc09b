import type { DeadLetter } from '../../model/dead-letter.ts'
import { errorClassOf } from '../../model/history.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import { inSteps } from '../../sql/sqlite-step.ts'
import type { StoredShelf } from '../../store/stored-shelf.ts'
import { pageOf, startOf } from '../../transport/shelf-page.ts'
import type {
  AuditEntry,
  AuditNote,
  ShelfFilter,
  ShelfListOptions,
  ShelfPage,
} from '../../transport/transport.ts'
import { envelopeFrom, envelopeText, letterFrom, letterText } from '../stored-message.ts'
import type { Database } from './database.ts'
import {
  ADD_AUDIT,
  BYTES_OF_LETTER,
  COUNT_LETTERS,
  COUNT_LETTERS_OF_CLASS,
  GET_LETTER,
  HAS_LETTER,
  LIST_AUDIT,
  LIST_LETTERS,
  LIST_LETTERS_BARE,
  LIST_LETTERS_BARE_OF_CLASS,
  LIST_LETTERS_OF_CLASS,
  PUT_LETTER,
  REMOVE_LETTER,
  REMOVE_LETTER_OF,
} from './statements.ts'

/** Letters that one transaction removes at most. */
const STEP_MAX = 500
const FOREVER: number = Number.MAX_SAFE_INTEGER

export function sqliteShelf(database: Database): StoredShelf {
  const { handle, now, look, write } = database
  return {
    put: (batch) => write(() => put(database, batch)),
    list: (queue, options) => look(() => list(database, queue, options)),
    get: (queue, id) =>
      look(() => {
        const found = prepared(handle, GET_LETTER).get(queue, id)
        return found === undefined ? undefined : deadLetterOf(found)
      }),
    count: (queue, filter) => look(() => count(database, queue, filter)),
    redriven: (queue, letters, note) =>
      inSteps(letters, {
        ...{ write, max: STEP_MAX, bytesOf: ({ id }) => bytesOf(database, queue, id) },
        act: (step) => redriven(database, queue, step, note),
      }),
    discard: (queue, ids, note) =>
      inSteps(ids, {
        ...{ write, max: STEP_MAX, bytesOf: (id) => bytesOf(database, queue, id) },
        act: (step) => discard(database, queue, step, note),
      }),
    audit: (queue, limit) =>
      look(() => prepared(handle, LIST_AUDIT).all(queue, limit).map(auditEntry)),
  }

  function put({ handle }: Database, batch: readonly Omit<DeadLetter, 'deadAt'>[]): void {
    const at = now()
    for (const letter of batch) {
      const { queue, envelope, errorClass } = letter
      const texts = [letterText(letter), envelopeText(envelope)]
      const values = [envelope.id, at, errorClass, ...texts, envelope.body]
      prepared(handle, PUT_LETTER).run(queue, ...values)
    }
  }
}

function bytesOf({ handle }: Database, queue: string, id: string): number {
  return asNumber(asRow(prepared(handle, BYTES_OF_LETTER).get(queue, id)).bytes)
}

function redriven(
  database: Database,
  queue: string,
  letters: readonly { readonly id: string; readonly deadAt: number }[],
  note: AuditNote,
): readonly string[] {
  const { handle } = database
  const known = letters.filter(
    ({ id }) => prepared(handle, HAS_LETTER).get(queue, id) !== undefined,
  )
  return known.map(({ id, deadAt }) => {
    prepared(handle, REMOVE_LETTER_OF).run(queue, id, deadAt)
    audit(database, queue, id, { ...note, act: 'redrive' })
    return id
  })
}

function discard(
  database: Database,
  queue: string,
  ids: readonly string[],
  note: AuditNote,
): readonly string[] {
  const { handle } = database
  const gone = ids.filter(
    (id) => Number(prepared(handle, REMOVE_LETTER).run(queue, id).changes) > 0,
  )
  for (const id of gone) audit(database, queue, id, { ...note, act: 'discard' })
  return gone
}

function audit(
  { handle, now }: Database,
  queue: string,
  id: string,
  { act, actor, reason }: AuditNote & Pick<AuditEntry, 'act'>,
): void {
  prepared(handle, ADD_AUDIT).run(queue, id, now(), act, actor, reason)
}

function list({ handle }: Database, queue: string, options: ShelfListOptions): ShelfPage {
  const { errorClass, deadBefore = FOREVER, limit, bodies = true } = options
  const start = startOf(options)
  const place = [deadBefore, start.deadAt, start.id, limit + 1]
  const rows =
    errorClass === undefined
      ? prepared(handle, bodies ? LIST_LETTERS : LIST_LETTERS_BARE).iterate(queue, ...place)
      : prepared(handle, bodies ? LIST_LETTERS_OF_CLASS : LIST_LETTERS_BARE_OF_CLASS).iterate(
          ...[queue, errorClass, ...place],
        )
  return pageOf(lettersOf(rows), limit)
}

function* lettersOf(rows: Iterable<unknown>): Generator<DeadLetter> {
  for (const row of rows) yield deadLetterOf(row)
}

function count({ handle }: Database, queue: string, filter: ShelfFilter): number {
  const { errorClass, deadBefore = FOREVER } = filter
  const row =
    errorClass === undefined
      ? prepared(handle, COUNT_LETTERS).get(queue, deadBefore)
      : prepared(handle, COUNT_LETTERS_OF_CLASS).get(queue, errorClass, deadBefore)
  return asNumber(asRow(row).n)
}

function deadLetterOf(value: unknown): DeadLetter {
  const { queue, id, dead_at, error_class, letter, message, body } = asRow(value)
  return {
    ...letterFrom(String(letter)),
    envelope: envelopeFrom(String(id), String(message), body),
    queue: String(queue),
    errorClass: errorClassOf(error_class),
    deadAt: asNumber(dead_at),
  }
}

function auditEntry(value: unknown): AuditEntry {
  const row = asRow(value)
  return {
    at: asNumber(row.at),
    act: row.act === 'discard' ? 'discard' : 'redrive',
    queue: String(row.queue),
    messageId: String(row.message_id),
    actor: String(row.actor),
    reason: String(row.reason),
  }
}
