import type { DeadLetter } from '../../model/dead-letter.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import { inSteps, type Steps } from '../../sql/sqlite-step.ts'
import { pageOf, startOf } from '../../transport/shelf-page.ts'
import type {
  AuditEntry,
  AuditNote,
  Shelf,
  ShelfFilter,
  ShelfListOptions,
  ShelfPage,
} from '../../transport/transport.ts'
import { givePlaces } from './fair-places.ts'
import { advance, isTaken, type QueueKey, unhalt } from './keys.ts'
import { deadLetterOf } from './row.ts'
import {
  ADD_AUDIT,
  ADD_TO_TOTAL,
  BYTES_OF_DEAD,
  COUNT_DEAD,
  COUNT_DEAD_OF_CLASS,
  GET_DEAD,
  KEY_OF_DEAD,
  LIST_AUDIT,
  LIST_DEAD,
  LIST_DEAD_BARE,
  LIST_DEAD_BARE_OF_CLASS,
  LIST_DEAD_OF_CLASS,
  REMOVE_DEAD,
  REVIVE,
} from './statements.ts'
import { needQueue, type QueueRow, type Store } from './store.ts'

/** Letters that one transaction moves or removes at most. */
const STEP_MAX = 500
const FOREVER: number = Number.MAX_SAFE_INTEGER

export function shelf(store: Store): Shelf {
  const { handle, clock } = store
  const acting = (name: string, note: AuditNote): Acting => {
    return { handle, queueId: needQueue(handle, name).id, note, now: clock.now() }
  }
  const steps = (name: string): Omit<Steps<string>, 'act'> => ({
    max: STEP_MAX,
    bytesOf: (id) => asNumber(asRow(prepared(handle, BYTES_OF_DEAD).get(name, id)).bytes),
    async write(work) {
      const value = await store.write(work)
      store.bell.ring()
      return value
    },
  })
  return {
    list: (name, options) => store.look(() => list(handle, needQueue(handle, name), options)),
    get: (name, id) =>
      store.look(() => {
        const found = prepared(handle, GET_DEAD).get(needQueue(handle, name).id, id)
        return found === undefined ? undefined : deadLetterOf(asRow(found), name)
      }),
    count: (name, filter) => store.look(() => count(handle, needQueue(handle, name).id, filter)),
    redrive: (name, ids, note) =>
      inSteps(ids, { ...steps(name), act: (step) => redrive(acting(name, note), step) }),
    discard: (name, ids, note) =>
      inSteps(ids, { ...steps(name), act: (step) => discard(acting(name, note), step) }),
    audit: (name, limit) =>
      store.look(() =>
        prepared(handle, LIST_AUDIT)
          .all(needQueue(handle, name).id, limit)
          .map((row) => auditEntry(row, name)),
      ),
  }
}

/** What a person does with dead letters of a queue, within the open transaction. */
interface Acting {
  readonly handle: SqliteHandle
  readonly queueId: number
  readonly note: AuditNote
  readonly now: number
}

function redrive(acting: Acting, ids: readonly string[]): readonly string[] {
  const { handle, queueId, now } = acting
  const moved = ids.filter((id) => {
    const state = stateOfRevived(handle, queueId, id)
    if (Number(prepared(handle, REVIVE).run(state, now, queueId, id).changes) === 0) return false
    return remove(acting, id, 'redrive')
  })
  if (moved.length > 0) prepared(handle, ADD_TO_TOTAL).run(moved.length, queueId)
  givePlaces(handle, queueId)
  return moved
}

function discard(acting: Acting, ids: readonly string[]): readonly string[] {
  const { handle, queueId, now } = acting
  const gone = ids.filter((id) => {
    const queueKey = keyOfDead(handle, queueId, id)
    if (queueKey && unhalt(handle, queueKey, id)) advance(handle, queueKey, now)
    return remove(acting, id, 'discard')
  })
  givePlaces(handle, queueId)
  return gone
}

function keyOfDead(handle: SqliteHandle, queueId: number, id: string): QueueKey | undefined {
  const found = prepared(handle, KEY_OF_DEAD).get(queueId, id)
  const key = found && asRow(found).ordering_key
  return typeof key === 'string' ? { queueId, key } : undefined
}

/** Whoever had halted its key goes to its front, others of a key that is taken go behind. */
function stateOfRevived(handle: SqliteHandle, queueId: number, id: string): number {
  const queueKey = keyOfDead(handle, queueId, id)
  if (queueKey === undefined || unhalt(handle, queueKey, id)) return 0
  return isTaken(handle, queueKey) ? 4 : 0
}

function remove(
  { handle, queueId, note, now }: Acting,
  id: string,
  act: AuditEntry['act'],
): boolean {
  if (Number(prepared(handle, REMOVE_DEAD).run(queueId, id).changes) === 0) return false
  prepared(handle, ADD_AUDIT).run(queueId, id, now, act, note.actor, note.reason)
  return true
}

function list(handle: SqliteHandle, queue: QueueRow, options: ShelfListOptions): ShelfPage {
  const { errorClass, deadBefore = FOREVER, limit, bodies = true } = options
  const start = startOf(options)
  const place = [deadBefore, start.deadAt, start.id, limit + 1]
  const rows =
    errorClass === undefined
      ? prepared(handle, bodies ? LIST_DEAD : LIST_DEAD_BARE).iterate(queue.id, ...place)
      : prepared(handle, bodies ? LIST_DEAD_OF_CLASS : LIST_DEAD_BARE_OF_CLASS).iterate(
          ...[queue.id, errorClass, ...place],
        )
  return pageOf(lettersOf(rows, queue.name), limit)
}

function* lettersOf(rows: Iterable<unknown>, queue: string): Generator<DeadLetter> {
  for (const row of rows) yield deadLetterOf(asRow(row), queue)
}

function count(handle: SqliteHandle, queueId: number, filter: ShelfFilter): number {
  const { errorClass, deadBefore = FOREVER } = filter
  const row =
    errorClass === undefined
      ? prepared(handle, COUNT_DEAD).get(queueId, deadBefore)
      : prepared(handle, COUNT_DEAD_OF_CLASS).get(queueId, errorClass, deadBefore)
  return asNumber(asRow(row).n)
}

function auditEntry(value: unknown, queue: string): AuditEntry {
  const row = asRow(value)
  return {
    at: asNumber(row.at),
    act: row.act === 'discard' || row.act === 'skip' ? row.act : 'redrive',
    queue,
    messageId: String(row.message_id),
    actor: String(row.actor),
    reason: String(row.reason),
  }
}
