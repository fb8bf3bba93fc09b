import type { RememberedKey } from '../../model/envelope.ts'
import type { Row } from '../../sql/executor.ts'
import { numberArray, textArray } from '../../sql/pg-array.ts'
import type { KeyedMessage, KeyMemory, Reservation } from '../../store/key-memory.ts'
import type { Database } from './database.ts'

export function postgresKeys({ sql, query }: Database): KeyMemory {
  return {
    async reserve(queue, batch, holdMs) {
      const outcomes: Reservation[] = batch.map(() => ({ as: 'reserved' }))
      for (const round of rounds(batch)) {
        const items = round.flatMap(([place, message]) => itemsOf(message, place))
        const places = numberArray(items.map(({ place }) => place))
        const params = [queue, places, ...columns(items), prints(items), holdMs]
        for (const row of await query(sql.RESERVE, params)) {
          outcomes[Number(row.place)] = refusalOf(row)
        }
      }
      return outcomes
    },
    async confirm(queue, batch) {
      const items = firstOfEach(batch)
      const windows = numberArray(items.map(({ key }) => key.windowMs))
      await query(sql.CONFIRM, [queue, ...columns(items), prints(items), windows])
    },
    async free(queue, batch) {
      await query(sql.FREE, [queue, ...columns(batch.flatMap((message) => itemsOf(message)))])
    },
  }
}

interface Item {
  readonly place: number
  readonly id: string
  readonly key: RememberedKey
}

type Placed = readonly [number, KeyedMessage]

function itemsOf({ id, keys }: KeyedMessage, place = 0): readonly Item[] {
  return keys.map((key) => ({ place, id, key }))
}

function columns(items: readonly Item[]): readonly string[] {
  return [
    textArray(items.map(({ id }) => id)),
    textArray(items.map(({ key }) => key.kind)),
    textArray(items.map(({ key }) => key.key)),
  ]
}

function prints(items: readonly Item[]): string {
  return textArray(items.map(({ key }) => key.fingerprint ?? null))
}

/** Nearly always one: messages that share a key follow each other, so that they count in their order. */
function rounds(batch: readonly KeyedMessage[]): readonly (readonly Placed[])[] {
  const found: Placed[][] = []
  const next = new Map<string, number>()
  for (const [place, message] of batch.entries()) {
    if (message.keys.length === 0) continue
    const names = message.keys.map(nameOf)
    const at = Math.max(0, ...names.map((name) => next.get(name) ?? 0))
    for (const name of names) next.set(name, at + 1)
    const round = found[at] ?? []
    found[at] = round
    round.push([place, message])
  }
  return found
}

function firstOfEach(batch: readonly KeyedMessage[]): readonly Item[] {
  const items = batch.flatMap((message) => itemsOf(message)).toReversed()
  return [...new Map(items.map((item) => [nameOf(item.key), item])).values()]
}

function nameOf({ kind, key }: RememberedKey): string {
  return `${kind}\n${key}`
}

function refusalOf({ reason, holder }: Row): Reservation {
  const id = String(holder)
  switch (reason) {
    case 2:
      return { as: 'conflict', id }
    case 4:
      return { as: 'held', id }
    default:
      return { as: 'duplicate', id }
  }
}
