import type { DeadLetter } from '../model/dead-letter.ts'
import { OptionsError } from '../model/errors.ts'
import { show } from '../model/problems.ts'
import type { AuditNote, Shelf, ShelfListOptions, ShelfPage } from '../transport/transport.ts'
import { withoutDelay } from './ready-since.ts'

/** The dead letters of a queue with levels: those of all of them. A redriven one goes back to its level, where it is. */
export function levelledShelf(shelf: Shelf, placesOf: (queue: string) => readonly string[]): Shelf {
  const each = <T>(queue: string, act: (place: string) => Promise<T>): Promise<readonly T[]> =>
    Promise.all(placesOf(queue).map(act))
  const moveAll =
    (move: Shelf['redrive']): Shelf['redrive'] =>
    async (queue: string, ids: readonly string[], audit: AuditNote) =>
      (await each(queue, (place) => move(place, ids, audit))).flat()
  return {
    list: async (queue, options) => {
      const places = placesOf(queue)
      return places.length === 1 ? shelf.list(queue, options) : list(shelf, queue, places, options)
    },
    get: async (queue, id) => {
      const found = await each(queue, (place) => shelf.get(place, id))
      const level = found.findIndex((one) => one !== undefined)
      const letter = found[level]
      return letter && (found.length === 1 ? letter : atLevel(letter, queue, level))
    },
    count: async (queue, filter) =>
      (await each(queue, (place) => shelf.count(place, filter))).reduce((sum, n) => sum + n, 0),
    redrive: moveAll(shelf.redrive),
    discard: moveAll(shelf.discard),
    audit: async (queue, limit) =>
      (await each(queue, (place) => shelf.audit(place, limit)))
        .flat()
        .map((entry) => ({ ...entry, queue }))
        .sort((one, other) => other.at - one.at)
        .slice(0, limit),
  }
}

/** For each level its own cursor, empty at its begin, null behind its end. */
type Place = readonly (string | null)[]

/** A page that changed while it was put together is put together anew, so often at most. */
const TRIES = 3

async function list(
  shelf: Shelf,
  queue: string,
  places: readonly string[],
  options: ShelfListOptions,
): Promise<ShelfPage> {
  const from = placeOf(options.cursor, places.length)
  for (let tries = 1; ; tries++) {
    const pages = await Promise.all(
      places.map((place, level) => pageFrom(shelf, place, from[level] ?? null, options)),
    )
    const items = newest(
      pages.map(({ items, cursor }, level) => ({
        letters: items.map((letter) => atLevel(letter, queue, level)),
        isAll: cursor === null,
      })),
      options.limit,
    )
    const next = await Promise.all(
      pages.map((page, level) => {
        const taken = items.filter(({ envelope }) => envelope.priority === level)
        const start = from[level] ?? null
        return behind({ shelf, place: places[level] ?? queue, start, page, options }, taken)
      }),
    )
    const isSure = next.every((cursor) => cursor !== undefined)
    if (!isSure && tries < TRIES) continue
    const place = next.map((cursor, level) =>
      cursor === undefined ? (from[level] ?? null) : cursor,
    )
    const isOver = place.every((cursor) => cursor === null)
    return { items, cursor: isOver ? null : JSON.stringify(place) }
  }
}

const NOTHING: ShelfPage = { items: [], cursor: null }

async function pageFrom(
  shelf: Shelf,
  place: string,
  start: string | null,
  { cursor: _, ...options }: ShelfListOptions,
): Promise<ShelfPage> {
  if (start === null) return NOTHING
  return shelf.list(place, start === '' ? options : { ...options, cursor: start })
}

interface Listed {
  readonly shelf: Shelf
  readonly place: string
  readonly start: string | null
  readonly page: ShelfPage
  readonly options: ShelfListOptions
}

/** The cursor of a level behind what was taken of its page; undefined when it changed meanwhile, and nobody can say. */
async function behind(
  { shelf, place, start, page, options }: Listed,
  taken: readonly DeadLetter[],
): Promise<string | null | undefined> {
  if (taken.length === page.items.length) return page.cursor
  if (taken.length === 0) return start
  const again = await pageFrom(shelf, place, start, {
    ...options,
    limit: taken.length,
    bodies: false,
  })
  const isSame = again.items.at(-1)?.envelope.id === taken.at(-1)?.envelope.id
  return isSame ? again.cursor : undefined
}

/** @throws MILLRACE_INVALID_OPTIONS for a cursor that no list gave */
function placeOf(cursor: string | undefined, levels: number): Place {
  if (cursor === undefined) return Array.from({ length: levels }, () => '')
  const place: unknown = parsed(cursor)
  const isOne = (one: unknown): one is string | null => one === null || typeof one === 'string'
  if (Array.isArray(place) && place.length <= levels && place.every(isOne)) return place
  throw new OptionsError('dead letters', [
    `cursor: expected the cursor of a page before, got ${show(cursor)}`,
  ])
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function atLevel(letter: DeadLetter, queue: string, level: number): DeadLetter {
  return { ...letter, queue, envelope: { ...withoutDelay(letter.envelope), priority: level } }
}

interface LevelPage {
  readonly letters: readonly DeadLetter[]
  /** False: more of this level come behind them. */
  readonly isAll: boolean
}

/**
 * The first ones of all, each level in its own order. A page that ended before its limit hides what comes next in its level, so nothing
 * of the others goes before that.
 */
function newest(levels: readonly LevelPage[], limit: number): readonly DeadLetter[] {
  const at = levels.map(() => 0)
  const found: DeadLetter[] = []
  while (found.length < limit) {
    let next: DeadLetter | undefined
    for (const [level, { letters, isAll }] of levels.entries()) {
      const one = letters[at[level] ?? 0]
      if (one === undefined && !isAll) return found
      if (one !== undefined && (next === undefined || one.deadAt > next.deadAt)) next = one
    }
    if (next === undefined) return found
    found.push(next)
    const { priority } = next.envelope
    at[priority] = (at[priority] ?? 0) + 1
  }
  return found
}
