import { closedError } from '../../model/closed-error.ts'
import type { Row } from '../../sql/executor.ts'
import { textArray } from '../../sql/pg-array.ts'
import { withBodies } from '../../sql/pg-page.ts'
import { MOMENT_MAX_MS } from '../../transport/refusal.ts'
import { PAGE_BYTES_MAX, pageOf, startOf } from '../../transport/shelf-page.ts'
import type {
  AuditEntry,
  AuditNote,
  Shelf,
  ShelfFilter,
  ShelfListOptions,
  ShelfPage,
} from '../../transport/transport.ts'
import { deadLetterOf, momentOf, storableText } from './row.ts'
import { news } from './send.ts'
import { needQueue, query, type Store } from './store.ts'

export function shelf(store: Store): Shelf {
  const { sql } = store
  const act = async (
    run: (params: readonly unknown[]) => Promise<readonly Row[]>,
    queueId: number,
    ids: readonly string[],
    { actor, reason }: AuditNote,
  ): Promise<readonly string[]> => {
    const wanted = [...new Set(ids)].filter((id) => !id.includes('\0'))
    const params = [queueId, textArray(wanted), storableText(actor), storableText(reason)]
    const rows = await run(params)
    const gone = new Set(rows.map((row) => String(row.id)))
    return wanted.filter((id) => gone.has(id))
  }
  return {
    list: async (name, options) => await list(store, name, await needQueue(store, name), options),
    async get(name, id) {
      const queueId = await needQueue(store, name)
      if (id.includes('\0')) return undefined
      const [row] = await query(store, sql.GET_DEAD, [queueId, id])
      return row === undefined ? undefined : deadLetterOf(row, name)
    },
    count: async (name, filter) => await count(store, await needQueue(store, name), filter),
    async redrive(name, ids, note) {
      const queueId = await needQueue(store, name)
      const moved = await act((params) => redriveAll(store, params), queueId, ids, note)
      if (moved.length > 0) news(store, queueId)
      return moved
    },
    async discard(name, ids, note) {
      const queueId = await needQueue(store, name)
      const gone = await act((params) => query(store, sql.DISCARD, params), queueId, ids, note)
      if (gone.length > 0) news(store, queueId)
      return gone
    },
    async audit(name, limit) {
      const rows = await query(store, sql.LIST_AUDIT, [await needQueue(store, name), limit])
      return rows.map((row) => auditEntry(row, name))
    },
  }
}

/** The keys are locked by a statement before, also for one letter: the redrive has to see what those who had them left. */
async function redriveAll(
  { pool, sql, closing }: Store,
  params: readonly unknown[],
): Promise<readonly Row[]> {
  if (closing.aborted) throw closedError('the transport')
  return await pool.begin(async (executor) => {
    await executor.execute(sql.LOCK_KEYS_OF_DEAD, params.slice(0, 2))
    return executor.execute(sql.REDRIVE, params)
  })
}

async function list(
  store: Store,
  name: string,
  queueId: number,
  options: ShelfListOptions,
): Promise<ShelfPage> {
  const { sql } = store
  const { errorClass, deadBefore = MOMENT_MAX_MS, limit, bodies = true } = options
  const start = startOf(options)
  const place = [queueId, momentParam(deadBefore), momentParam(start.deadAt), start.id, limit + 1]
  const ofClass = errorClass === undefined ? [] : [errorClass]
  const all = bodies ? sql.LIST_DEAD : sql.LIST_DEAD_BARE
  const some = bodies ? sql.LIST_DEAD_OF_CLASS : sql.LIST_DEAD_BARE_OF_CLASS
  const params = [...place, ...(bodies ? [PAGE_BYTES_MAX] : []), ...ofClass]
  const rows = await query(store, errorClass === undefined ? all : some, params)
  const letters = rows.map((row) => deadLetterOf(row, name))
  return pageOf(letters, bodies ? withBodies(rows, limit) : limit)
}

async function count(store: Store, queueId: number, filter: ShelfFilter): Promise<number> {
  const { errorClass, deadBefore = MOMENT_MAX_MS } = filter
  const [row] =
    errorClass === undefined
      ? await query(store, store.sql.COUNT_DEAD, [queueId, momentParam(deadBefore)])
      : await query(store, store.sql.COUNT_DEAD_OF_CLASS, [
          queueId,
          momentParam(deadBefore),
          errorClass,
        ])
  return Number(row?.n ?? 0)
}

function momentParam(moment: number): number {
  return Math.min(MOMENT_MAX_MS, Math.max(0, moment))
}

function auditEntry(row: Row, queue: string): AuditEntry {
  return {
    at: momentOf(row.at),
    act: row.act === 'discard' || row.act === 'skip' ? row.act : 'redrive',
    queue,
    messageId: String(row.message_id),
    actor: String(row.actor),
    reason: String(row.reason),
  }
}
