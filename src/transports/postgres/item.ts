import type { Sent } from '../../model/delivery.ts'
import type { Envelope, RememberedKey } from '../../model/envelope.ts'
import { isId } from '../../model/ids.ts'
import { bytesArray, numberArray, textArray } from '../../sql/pg-array.ts'
import { refused } from '../../transport/outcomes.ts'
import { headersText } from './row.ts'
import { BODY_MAX_BYTES, DELAY_MAX_MS, PRIORITIES } from './traits.ts'

/** One item of a batch on its way, with its place in it. */
export interface Item {
  readonly place: number
  readonly envelope: Envelope
  readonly keys: readonly RememberedKey[]
}

/** The latest moment that both Date and Postgres know. */
const MOMENT_MAX_MS = 8_640_000_000_000_000
/** An index entry holds a third of a page. */
const KEY_MAX_BYTES = 2_000

/** What Postgres would refuse is refused before it is asked, item by item: an error there fails the whole batch. */
export function refusal(envelope: Envelope): Sent | undefined {
  const {
    body,
    delayMs = 0,
    id,
    priority,
    readyAt,
    idempotencyKey,
    orderingKey,
    remember = [],
  } = envelope
  if (body.byteLength > BODY_MAX_BYTES) return refused('tooLarge')
  const timed = delayMs >= 0 && delayMs <= DELAY_MAX_MS && !(delayMs > 0 && readyAt !== undefined)
  const finite = readyAt === undefined || (Number.isFinite(readyAt) && readyAt <= MOMENT_MAX_MS)
  const ranked = Number.isInteger(priority) && priority >= 0 && priority < PRIORITIES
  const texts = [
    idempotencyKey,
    orderingKey,
    ...remember.flatMap(({ key, fingerprint }) => [key, fingerprint]),
  ]
  const windows = remember.every(({ windowMs }) => windowMs >= 0 && windowMs <= DELAY_MAX_MS)
  const good = timed && finite && ranked && windows && isId(id) && texts.every(isStorable)
  return good ? undefined : refused('invalid')
}

function isStorable(text: string | undefined): boolean {
  if (text === undefined) return true
  return !text.includes('\0') && text.isWellFormed() && Buffer.byteLength(text) <= KEY_MAX_BYTES
}

/** The parameters of STORE. */
export function storeParams(queueId: number, items: readonly Item[]): readonly unknown[] {
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
