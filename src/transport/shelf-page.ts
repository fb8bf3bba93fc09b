import type { DeadLetter } from '../model/dead-letter.ts'
import { OptionsError } from '../model/errors.ts'
import { show } from '../model/problems.ts'
import type { ShelfListOptions, ShelfPage } from './transport.ts'

/** Where a dead letter stands in the order of the shelf: by `deadAt`, then by id, both descending. */
export interface ShelfPlace {
  /** Epoch ms. */
  readonly deadAt: number
  readonly id: string
}

/** Newer than every dead letter: no moment is later, and no id has a larger character. */
const newest: ShelfPlace = { deadAt: Number.MAX_SAFE_INTEGER, id: '\u{10ffff}' }

/**
 * The place behind which a page begins: the last one of the page before, or the newest of all.
 * @throws MILLRACE_INVALID_OPTIONS for a cursor that no list gave
 */
export function startOf({ cursor }: Pick<ShelfListOptions, 'cursor'>): ShelfPlace {
  if (cursor === undefined) return newest
  const cut = cursor.indexOf('_')
  const deadAt = Number(cursor.slice(0, cut))
  const id = cursor.slice(cut + 1)
  // Some databases take no NUL in a text, and no id has one.
  if (cut > 0 && Number.isFinite(deadAt) && !id.includes('\0')) return { deadAt, id }
  throw new OptionsError('dead letters', [
    `cursor: expected the cursor of a page before, got ${show(cursor)}`,
  ])
}

/** Bytes of bodies in one page, unless its first letter has more: 500 letters may have 16 MiB each. */
export const PAGE_BYTES_MAX = 16_777_216

/**
 * A page of what was found in order, no more of it than a page may have. Give one more than `limit`: it tells whether there is a next
 * page. What comes bit by bit is not read further than the page needs.
 */
export function pageOf(found: Iterable<DeadLetter>, limit: number): ShelfPage {
  const items: DeadLetter[] = []
  let bytes = 0
  for (const letter of found) {
    bytes += letter.envelope.body.byteLength
    const last = items.at(-1)
    if (last && (items.length >= limit || bytes > PAGE_BYTES_MAX)) {
      return { items, cursor: cursorAt(last) }
    }
    items.push(letter)
  }
  return { items, cursor: null }
}

function cursorAt({ deadAt, envelope }: DeadLetter): string {
  return `${deadAt}_${envelope.id}`
}
