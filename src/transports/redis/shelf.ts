import { auditEntry, texts, upTo } from '../../redis/shelf-place.ts'
import { PAGE_BYTES_MAX, pageOf } from '../../transport/shelf-page.ts'
import type { AuditEntry, AuditNote, Shelf } from '../../transport/transport.ts'
import { deadLetterOf } from './entry.ts'
import { scripts } from './script.ts'
import { needQueue, run, type Store } from './store.ts'

const bytes = { bytes: true } as const
/** Ids that one script takes off the shelf. */
const STEP = 500

export function shelf(store: Store): Shelf {
  const take = async (
    name: string,
    act: AuditEntry['act'],
    ids: readonly string[],
    { actor, reason }: AuditNote,
  ): Promise<readonly string[]> => {
    const queue = await needQueue(store, name)
    const moved: string[] = []
    const wanted = [...new Set(ids)]
    for (let at = 0; at < wanted.length; at += STEP) {
      const args = [act, actor, reason, ...wanted.slice(at, at + STEP)]
      moved.push(...texts(await run(store, scripts.TAKE_DEAD, queue, args)))
    }
    // A discard may let a key go on.
    if (moved.length > 0) store.bell.ring(name)
    return moved
  }
  return {
    async list(name, options) {
      const { errorClass = '', limit, bodies = true } = options
      const most = bodies ? String(PAGE_BYTES_MAX) : ''
      const args = [errorClass, upTo(options), String(limit + 1), most]
      const reply = await run(store, scripts.LIST_DEAD, await needQueue(store, name), args, bytes)
      const found = Array.isArray(reply) ? reply.map((one) => deadLetterOf(one, name)) : []
      return pageOf(
        found.filter((letter) => letter !== undefined),
        limit,
      )
    },
    async get(name, id) {
      const queue = await needQueue(store, name)
      return deadLetterOf(await run(store, scripts.GET_DEAD, queue, [id], bytes), name)
    },
    async count(name, filter) {
      const args = [filter.errorClass ?? '', upTo(filter)]
      return Number(await run(store, scripts.COUNT_DEAD, await needQueue(store, name), args))
    },
    redrive: (name, ids, note) => take(name, 'redrive', ids, note),
    discard: (name, ids, note) => take(name, 'discard', ids, note),
    async audit(name, limit) {
      const queue = await needQueue(store, name)
      const reply = await run(store, scripts.AUDIT, queue, [String(limit)])
      return Array.isArray(reply) ? reply.map((entry) => auditEntry(entry, name)) : []
    },
  }
}
