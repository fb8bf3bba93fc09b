import type { DeadLetter } from '../model/dead-letter.ts'
import { pageOf, type ShelfPlace, startOf } from './shelf-page.ts'
import type { ShelfFilter, ShelfListOptions, ShelfPage } from './transport.ts'

/** The dead letters of one queue, oldest first inside, newest first to the reader. */
export interface DeadLetters {
  size(): number
  get(id: string): DeadLetter | undefined
  add(letter: DeadLetter): void
  take(id: string): DeadLetter | undefined
  list(options: ShelfListOptions): ShelfPage
  count(filter: ShelfFilter): number
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
      let at = firstAtOrAfter(order, startOf(options))
      const found: DeadLetter[] = []
      while (at > 0 && found.length <= options.limit) {
        at -= 1
        const letter = order[at] as DeadLetter
        if (!current(letter) || !matches(letter, options)) continue
        found.push(options.bodies === false ? bare(letter) : letter)
      }
      return pageOf(found, options.limit)
    },
    count: (filter) => order.filter((letter) => current(letter) && matches(letter, filter)).length,
  }
}

const noBytes = new Uint8Array(0)

/** As of those that would have to read it: who asks for no bodies must not count on one. */
function bare(letter: DeadLetter): DeadLetter {
  return { ...letter, envelope: { ...letter.envelope, body: noBytes } }
}

function placeOf(letter: DeadLetter): ShelfPlace {
  return { deadAt: letter.deadAt, id: letter.envelope.id }
}

function matches(letter: DeadLetter, filter: ShelfFilter): boolean {
  if (filter.errorClass !== undefined && letter.errorClass !== filter.errorClass) return false
  return filter.deadBefore === undefined || letter.deadAt <= filter.deadBefore
}

function firstAtOrAfter(order: readonly DeadLetter[], place: ShelfPlace): number {
  let low = 0
  let high = order.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(placeOf(order[middle] as DeadLetter), place)) low = middle + 1
    else high = middle
  }
  return low
}

function isBefore(a: ShelfPlace, b: ShelfPlace): boolean {
  return a.deadAt === b.deadAt ? a.id < b.id : a.deadAt < b.deadAt
}
