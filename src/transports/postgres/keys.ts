import type { Sent } from '../../model/delivery.ts'
import type { RememberedKey } from '../../model/envelope.ts'
import type { PgExecutor, Row } from '../../sql/executor.ts'
import { duplicateOf, refused } from '../../transport/outcomes.ts'
import { type Item, keyParams, nameOf, rememberParams } from './item.ts'
import type { Statements } from './store.ts'

/** A holder may vanish between losing to it and looking it up: its transaction rolled back, its window ended. */
const TRIES = 5

export interface Decided {
  /** Free to be stored: all their keys are theirs. */
  readonly won: readonly Item[]
  /** The rest, by place. */
  readonly outcomes: ReadonlyMap<number, Sent>
}

/**
 * Decides items with keys, no two of which share one, inside a transaction: whoever inserts a key first stores its
 * message, all others are answered with that message.
 */
export async function settleKeys(
  sql: Statements,
  executor: PgExecutor,
  queueId: number,
  items: readonly Item[],
): Promise<Decided> {
  const won: Item[] = []
  const outcomes = new Map<number, Sent>()
  let open = items
  for (let attempt = 1; open.length > 0 && attempt <= TRIES; attempt++) {
    const mine = names(await executor.execute(sql.REMEMBER, rememberParams(queueId, open)))
    const losers = open.filter((item) => !item.keys.every((key) => mine.has(nameOf(key))))
    won.push(...open.filter((item) => !losers.includes(item)))
    open = await judge(sql, executor, queueId, losers, mine, outcomes)
  }
  for (const { place } of open) outcomes.set(place, refused('throttled', { retryable: true }))
  return { won, outcomes }
}

/** Answers the losers by who holds their keys; those whose holder is gone come back to try again. */
async function judge(
  sql: Statements,
  executor: PgExecutor,
  queueId: number,
  losers: readonly Item[],
  mine: ReadonlySet<string>,
  outcomes: Map<number, Sent>,
): Promise<readonly Item[]> {
  if (losers.length === 0) return []
  const lostKeys = losers.flatMap(({ keys }) => keys.filter((key) => !mine.has(nameOf(key))))
  const holders = new Map(
    (await executor.execute(sql.RECALL, keyParams(queueId, lostKeys))).map((row) => [
      rowName(row),
      row,
    ]),
  )
  // Of a message that is not stored no key may stay.
  const halfWon = losers.flatMap(({ keys }) => keys.filter((key) => mine.has(nameOf(key))))
  if (halfWon.length > 0) await executor.execute(sql.FORGET, keyParams(queueId, halfWon))
  const again: Item[] = []
  for (const item of losers) {
    const answer = answerOf(item, holders)
    if (answer) outcomes.set(item.place, answer)
    else again.push(item)
  }
  return again
}

function answerOf({ envelope, keys }: Item, holders: ReadonlyMap<string, Row>): Sent | undefined {
  const held = keys.flatMap((key) => {
    const row = holders.get(nameOf(key))
    return row === undefined ? [] : [{ key, row, id: String(row.message_id) }]
  })
  // The same message sent once more, as after a lost answer.
  if (held.some(({ id }) => id === envelope.id)) return duplicateOf(envelope.id)
  const conflict = held.find(({ key, row }) => isOther(key, row))
  if (conflict) return refused('conflict', { id: conflict.id })
  const first = held[0]
  return first && duplicateOf(first.id)
}

function isOther({ kind, fingerprint }: RememberedKey, row: Row): boolean {
  return kind === 'idempotency' && row.fingerprint !== (fingerprint ?? null)
}

function names(rows: readonly Row[]): ReadonlySet<string> {
  return new Set(rows.map(rowName))
}

function rowName(row: Row): string {
  return nameOf({ kind: String(row.kind), key: String(row.key) })
}
