import type { Sent } from '../../model/delivery.ts'
import type { Envelope, RememberedKey } from '../../model/envelope.ts'
import { isKept } from '../../model/kept-text.ts'
import { bytesArray, numberArray, textArray } from '../../sql/pg-array.ts'
import { DELAY_MAX_MS } from '../../transport/keeps-all.ts'
import { refused } from '../../transport/outcomes.ts'
import { refusalOf } from '../../transport/refusal.ts'
import { headersText } from './row.ts'
import { postgresTraits } from './traits.ts'

/** One item of a batch on its way, with its place in it. */
export interface Item {
  readonly place: number
  readonly envelope: Envelope
  readonly keys: readonly RememberedKey[]
}

/** An index entry holds a third of a page. */
const KEY_MAX_BYTES = 2_000

/** What Postgres would refuse is refused before it is asked: keys are text there, and a part of an index. */
export function refusal(envelope: Envelope): Sent | undefined {
  const bad = refusalOf(envelope, postgresTraits)
  if (bad) return bad
  const { idempotencyKey, orderingKey, fairKey, remember = [] } = envelope
  const texts = [
    idempotencyKey,
    orderingKey,
    fairKey,
    ...remember.flatMap(({ key, fingerprint }) => [key, fingerprint]),
  ]
  const windows = remember.every(({ windowMs }) => windowMs >= 0 && windowMs <= DELAY_MAX_MS)
  return windows && texts.every(isStorable) ? undefined : refused('invalid')
}

function isStorable(text: string | undefined): boolean {
  if (text === undefined) return true
  return isKept(text) && Buffer.byteLength(text) <= KEY_MAX_BYTES
}

/** The parameters of STORE. */
export function storeParams(
  queueId: number,
  items: readonly Item[],
  lockMs: number | undefined,
): readonly unknown[] {
  const envelopes = items.map((item) => item.envelope)
  const column = <T>(read: (envelope: Envelope) => T): T[] => envelopes.map(read)
  return [
    queueId,
    textArray(column(({ id }) => id)),
    numberArray(column(({ priority }) => priority)),
    numberArray(column(({ delayMs = 0 }) => delayMs)),
    numberArray(column(({ readyAt }) => (readyAt === undefined ? null : Math.max(0, readyAt)))),
    textArray(column(({ idempotencyKey }) => idempotencyKey ?? null)),
    textArray(column(({ orderingKey }) => orderingKey ?? null)),
    textArray(column(({ headers }) => headersText(headers))),
    bytesArray(column(({ body }) => body)),
    lockMs === undefined ? null : String(lockMs),
    textArray(column(({ fairKey }) => fairKey ?? null)),
    numberArray(column(({ fairWeight }) => fairWeight ?? null)),
  ]
}

/** The parameters of REMEMBER. */
export function rememberParams(queueId: number, items: readonly Item[]): readonly unknown[] {
  const all = items.flatMap(({ envelope, keys }) =>
    keys.map((key) => ({ id: envelope.id, ...key })),
  )
  return [
    queueId,
    textArray(all.map(({ kind }) => kind)),
    textArray(all.map(({ key }) => key)),
    textArray(all.map(({ fingerprint }) => fingerprint ?? null)),
    textArray(all.map(({ id }) => id)),
    numberArray(all.map(({ windowMs }) => windowMs)),
  ]
}

/** The parameters of RECALL and FORGET. */
export function keyParams(queueId: number, keys: readonly RememberedKey[]): readonly unknown[] {
  return [queueId, textArray(keys.map(({ kind }) => kind)), textArray(keys.map(({ key }) => key))]
}

export function nameOf({
  kind,
  key,
}: Pick<RememberedKey, 'key'> & { readonly kind: string }): string {
  return `${kind}:${key}`
}
