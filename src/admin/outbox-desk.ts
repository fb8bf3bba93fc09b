import { problems, show } from '../model/problems.ts'
import type { Admin, StuckListOptions, StuckResult } from './admin.ts'
import { type AdminContext, stuckOf } from './context.ts'
import { checkAudit, checkDiscard, checkIds, checkLimit } from './dead-letter-options.ts'

/** Where a person looks at what the outbox cannot get rid of, and decides. */
export function outboxDesk({ outbox, find }: AdminContext): Admin['outbox'] {
  return {
    list: async (ref, options = {}) => {
      const { name } = find(ref)
      const { limit, after } = checkList(name, options)
      const found = await stuckOf(outbox).list(name, { limit: limit + 1, after })
      const page = found.slice(0, limit)
      const last = page.at(-1)
      return {
        items: page.map(({ place: _, ...row }) => ({ queue: name, ...row })),
        cursor: found.length > limit && last ? last.place : null,
      }
    },
    retry: async (ref, what) => {
      const { name } = find(ref)
      const found = problems(`retry in the outbox of queue "${name}"`)
      found.knownKeys(what, ['ids'])
      checkIds(what.ids, found)
      found.throwIfAny()
      return resultOf(what.ids, await stuckOf(outbox).retry(name, what.ids))
    },
    discard: async (ref, what) => {
      const { name } = find(ref)
      checkDiscard(name, what)
      const { ids, reason, actor = 'api' } = what
      return resultOf(ids, await stuckOf(outbox).discard(name, ids, { actor, reason }))
    },
    audit: async (ref, options = {}) => {
      const { name } = find(ref)
      return stuckOf(outbox).audit(name, checkAudit(name, options))
    },
  }
}

function resultOf(asked: readonly string[], done: readonly string[]): StuckResult {
  const went = new Set(done)
  return { done, notFound: [...new Set(asked)].filter((id) => !went.has(id)) }
}

/** Places are whole numbers, as wide as a bigint. */
const PLACE = /^\d{1,18}$/

function checkList(
  queue: string,
  options: StuckListOptions,
): { readonly limit: number; readonly after: string | undefined } {
  const found = problems(`outbox of queue "${queue}"`)
  found.knownKeys(options, ['limit', 'cursor'])
  const { cursor } = options
  const isPlace = typeof cursor === 'string' && PLACE.test(cursor)
  if (cursor !== undefined && cursor !== null && !isPlace) {
    found.add(`cursor: expected the cursor of the page before, got ${show(cursor)}`)
  }
  const limit = checkLimit(options.limit, found)
  found.throwIfAny()
  return { limit, after: cursor ?? undefined }
}
