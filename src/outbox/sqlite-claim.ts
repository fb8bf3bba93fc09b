import type { SqliteHandle } from '../sql/executor.ts'
import { asNumber, asRow, prepared } from '../sql/sqlite-handle.ts'
import { relayGapMs } from './backoff.ts'
import { reasonOf } from './fault-reason.ts'
import type { Handover } from './handover.ts'
import type { RelayFailure } from './outbox.ts'
import { type ClaimedRow, claimedRowOf, failureOf } from './row.ts'
import {
  CLAIM,
  FAILED,
  GIVE_BACK,
  NEXT_HEAD,
  OF_KEY,
  REMOVE,
  RENEW,
  UNORDERED,
} from './sqlite-statements.ts'

/** How long a relay may be silent before others take its rows. Renewed every third while it publishes. */
export const CLAIM_MS = 10_000

/** Where the last look at ordering keys ended, so that no key is always the last. */
export interface KeyCursor {
  readonly queue: string
  readonly key: string
}

export const firstKey: KeyCursor = { queue: '', key: '' }

export interface Claims {
  readonly rows: readonly ClaimedRow[]
  readonly cursor: KeyCursor
}

/** Keys looked at in one pass, and rows of one of them: they leave one after another. */
const KEYS_MAX = 200
const OF_KEY_MAX = 20

/** Takes rows for one relay; inside a write transaction. Rows with a key get up to half, the others the rest. */
export function claim(
  handle: SqliteHandle,
  now: number,
  {
    name,
    max,
    cursor,
  }: { readonly name: string; readonly max: number; readonly cursor: KeyCursor },
): Claims {
  const ordered = ordersDue(handle, now, Math.ceil(max / 2), cursor)
  const unordered = prepared(handle, UNORDERED)
    .all(now, max - ordered.rows.length)
    .map(asRow)
  const rows = [...ordered.rows, ...unordered].map((row) =>
    claimedRowOf({ ...row, waited_ms: now - asNumber(row.created_at) }),
  )
  for (const { seq, tries } of rows) {
    // Should this relay die, the next try comes after the longer of the two.
    const heldMs = Math.max(CLAIM_MS, relayGapMs(tries + 1, noJitter))
    prepared(handle, CLAIM).run(name, now + heldMs, Number(seq))
  }
  return { rows, cursor: ordered.cursor }
}

const noJitter = (): number => 0

type Rows = readonly Readonly<Record<string, unknown>>[]

/**
 * Only who finds the first row of a key due may take it and those that follow; a held one is not due. Looks at every
 * key once at most, from the cursor on and then from the start.
 */
function ordersDue(
  handle: SqliteHandle,
  now: number,
  max: number,
  from: KeyCursor,
): { readonly rows: Rows; readonly cursor: KeyCursor } {
  const rows: Rows[number][] = []
  const seen = new Set<string>()
  let cursor = from
  for (let looked = 0; looked < KEYS_MAX && rows.length < max; looked++) {
    const found = nextHead(handle, cursor) ?? nextHead(handle, firstKey)
    if (found === undefined) break
    cursor = { queue: String(found.aggregatetype), key: String(found.ordering_key) }
    const name = `${cursor.queue} ${cursor.key}`
    if (seen.has(name)) break
    seen.add(name)
    if (asNumber(found.next_try_at) > now) continue
    const most = Math.min(OF_KEY_MAX, max - rows.length)
    rows.push(...prepared(handle, OF_KEY).all(cursor.queue, cursor.key, most).map(asRow))
  }
  return { rows, cursor }
}

function nextHead(handle: SqliteHandle, { queue, key }: KeyCursor): Rows[number] | undefined {
  const found = prepared(handle, NEXT_HEAD).get(queue, key)
  return found === undefined ? undefined : asRow(found)
}

export function renew(handle: SqliteHandle, now: number, name: string): void {
  prepared(handle, RENEW).run(now + CLAIM_MS, name)
}

/** Writes down what became of the rows, as far as they are still held. */
export function conclude(
  handle: SqliteHandle,
  now: number,
  name: string,
  { confirmed, failed, untouched }: Handover<ClaimedRow>,
  random: () => number,
): readonly RelayFailure[] {
  for (const { seq } of confirmed) prepared(handle, REMOVE).run(Number(seq), name)
  for (const { seq } of untouched) prepared(handle, GIVE_BACK).run(now, Number(seq), name)
  return failed.map((one) => {
    const gapMs = relayGapMs(one.row.tries + 1, random)
    prepared(handle, FAILED).run(now + gapMs, reasonOf(one.fault), Number(one.row.seq), name)
    return failureOf(one, gapMs)
  })
}
