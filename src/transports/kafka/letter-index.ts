import type { ErrorClass } from '../../model/history.ts'
import { freshHistory } from '../../model/history.ts'
import { type DeadLetters, deadLetters } from '../../transport/dead-letters.ts'
import type { AuditEntry, ShelfFilter, ShelfListOptions } from '../../transport/transport.ts'
import { BY_PUT, type Said } from './letter-record.ts'

/**
 * What a compacted topic of dead letters says, without the bodies: about 300 bytes for each letter. Whoever applies the same
 * records in their order comes to the same result, so of two that remove one letter at once the first in the topic did it.
 */
export interface LetterIndex {
  apply(said: Said, offset: bigint): void
  /** Where the letter stands, the newest of its id. */
  find(id: string): Instance | undefined
  /** All that are there of one id; more than one where two processes put it at once. */
  instances(id: string): readonly Instance[]
  page(options: ShelfListOptions): IndexPage
  count(filter: ShelfFilter): number
  /** Newest first. */
  audit(limit: number): readonly AuditEntry[]
  /** Keys of entries beyond those that are kept, oldest first. */
  oldAudits(): readonly string[]
  /** Ids that the act with this token removed or wrote down. */
  doneBy(token: string): ReadonlySet<string>
}

export interface Instance {
  readonly deadAt: number
  readonly offset: bigint
  readonly errorClass: ErrorClass
}

export interface IndexPage {
  readonly places: readonly { readonly id: string; readonly offset: bigint }[]
  readonly cursor: string | null
}

/** Older entries of the audit log are removed. */
export const AUDIT_KEPT = 10_000
/** Acts of others that may still cross with one of ours. */
const TAKEN_KEPT = 10_000
const NOBODY: ReadonlySet<string> = new Set()

export function letterIndex(awaited: ReadonlySet<string>): LetterIndex {
  const byId = new Map<string, readonly Instance[]>()
  const shown: DeadLetters = deadLetters()
  const audits = new Map<string, AuditEntry>()
  const takenBy = new Map<string, string>()
  const done = new Map<string, Set<string>>()

  const show = (id: string, instances: readonly Instance[]): void => {
    shown.take(id)
    const newest = instances.at(-1)
    if (newest === undefined) byId.delete(id)
    else {
      byId.set(id, instances)
      shown.add(stub(id, newest))
    }
  }
  const others = (id: string, deadAt: number): readonly Instance[] =>
    (byId.get(id) ?? []).filter((one) => one.deadAt !== deadAt)
  const remove = (id: string, deadAt: number, token: string): void => {
    const rest = others(id, deadAt)
    if (rest.length === (byId.get(id)?.length ?? 0)) return
    show(id, rest)
    if (token === BY_PUT) return
    takenBy.set(`${id} ${deadAt}`, token)
    const [oldest] = takenBy.keys()
    if (takenBy.size > TAKEN_KEPT && oldest !== undefined) takenBy.delete(oldest)
  }
  const write = (said: Extract<Said, { kind: 'audit' }>): void => {
    const { key, entry, deadAt, token } = said
    const taker = takenBy.get(`${entry.messageId} ${deadAt}`)
    // A redrive of a letter that was put anew meanwhile removes nothing, and happened.
    const isDone = taker === token || (taker === undefined && entry.act === 'redrive')
    // Behind a compaction the removals are gone, and what is written down is all there is.
    if (!isDone && taker !== undefined) return
    audits.set(key, entry)
    if (!awaited.has(token) || !isDone) return
    const ids = done.get(token) ?? new Set()
    done.set(token, ids.add(entry.messageId))
  }
  return {
    apply: (said, offset) => {
      if (said.kind === 'letter') {
        const { id, deadAt, errorClass } = said
        const all = [...others(id, deadAt), { deadAt, errorClass, offset }]
        show(
          id,
          all.toSorted((a, b) => a.deadAt - b.deadAt),
        )
      } else if (said.kind === 'removal') remove(said.id, said.deadAt, said.token)
      else if (said.kind === 'audit') write(said)
      else audits.delete(said.key)
    },
    find: (id) => byId.get(id)?.at(-1),
    instances: (id) => byId.get(id) ?? [],
    page: (options) => {
      const { items, cursor } = shown.list(options)
      const places = items.flatMap(({ envelope: { id } }) => {
        const instance = byId.get(id)?.at(-1)
        return instance === undefined ? [] : [{ id, offset: instance.offset }]
      })
      return { places, cursor }
    },
    count: shown.count,
    audit: (limit) => [...audits.values()].slice(-limit).reverse(),
    oldAudits: () =>
      audits.size > AUDIT_KEPT ? [...audits.keys()].slice(0, audits.size - AUDIT_KEPT) : [],
    doneBy: (token) => {
      const ids = done.get(token) ?? NOBODY
      done.delete(token)
      return ids
    },
  }
}

const NO_BODY = new Uint8Array(0)
const NO_HEADERS = {}

function stub(id: string, { deadAt, errorClass }: Instance): Parameters<DeadLetters['add']>[0] {
  return {
    envelope: { id, body: NO_BODY, headers: NO_HEADERS, priority: 0 },
    ...{ queue: '', owner: '', reason: '', history: freshHistory, sentAt: 0 },
    ...{ errorClass, deadAt },
  }
}
