import type { DeadLetter } from '../../model/dead-letter.ts'
import { OptionsError } from '../../model/errors.ts'
import type { ShelfFilter, ShelfListOptions, ShelfPage } from '../../transport/transport.ts'

/** The dead letters of one queue, oldest first inside, newest first to the reader. */
export interface DeadLetters {
  size(): number
  get(id: string): DeadLetter | undefined
  add(letter: DeadLetter): void
  take(id: string): DeadLetter | undefined
  list(options: ShelfListOptions): ShelfPage
  count(filter: ShelfFilter): number
}

interface Place {
  readonly deadAt: number
  readonly id: string
}

export function deadLetters(): DeadLetters {
  const byId = new Map<string, DeadLetter>()
  // Sorted; what was taken stays here until half of it is gone, so that a redrive of many is not
  // quadratic.
  let order: DeadLetter[] = []

  const current = (letter: DeadLetter): boolean => byId.get(letter.envelope.id) === letter
  const tidy = (): void => {
    if (order.length > 2 * byId.size + 16) order = order.filter(current)
  }

  return {
    size: () => byId.size,
    get: (id) => byId.get(id),
    add(letter) {
      byId.set(letter.envelope.id, letter)
      order.splice(firstAtOrAfter(order, placeOf(letter)), 0, letter)
    },
    take(id) {
      const letter = byId.get(id)
      byId.delete(id)
      tidy()
      return letter
    },
    list(options) {
      const cursor = options.cursor === undefined ? undefined : readCursor(options.cursor)
      let at = cursor ? firstAtOrAfter(order, cursor) : order.length
      const items: DeadLetter[] = []
      while (at > 0 && items.length < options.limit) {
        at -= 1
        const letter = order[at] as DeadLetter
        if (current(letter) && matches(letter, options)) items.push(letter)
      }
      const more = order.slice(0, at).some((letter) => current(letter) && matches(letter, options))
      const last = items.at(-1)
      return { items, cursor: more && last ? writeCursor(placeOf(last)) : null }
    },
    count: (filter) => order.filter((letter) => current(letter) && matches(letter, filter)).length,
  }
}

function placeOf(letter: DeadLetter): Place {
  return { deadAt: letter.deadAt, id: letter.envelope.id }
}

function matches(letter: DeadLetter, filter: ShelfFilter): boolean {
  if (filter.errorClass !== undefined && letter.errorClass !== filter.errorClass) return false
  return filter.deadBefore === undefined || letter.deadAt <= filter.deadBefore
}

function firstAtOrAfter(order: readonly DeadLetter[], place: Place): number {
  let low = 0
  let high = order.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(placeOf(order[middle] as DeadLetter), place)) low = middle + 1
    else high = middle
  }
  return low
}

function isBefore(a: Place, b: Place): boolean {
  return a.deadAt === b.deadAt ? a.id < b.id : a.deadAt < b.deadAt
}

function writeCursor(place: Place): string {
  return `${place.deadAt}_${place.id}`
}

function readCursor(cursor: string): Place {
  const cut = cursor.indexOf('_')
  const deadAt = Number(cursor.slice(0, cut))
  if (cut < 1 || !Number.isFinite(deadAt))
    throw new OptionsError('dead letters', [
      `cursor: expected the cursor of a page before, got "${cursor.slice(0, 80)}"`,
    ])
  return { deadAt, id: cursor.slice(cut + 1) }
}
