import { OptionsError } from '../model/errors.ts'
import { NAME_MAX as ID_MAX, isKept, isName } from '../model/kept-text.ts'
import { show } from '../model/problems.ts'

/** Names that layers make, of a queue and a key for example. A name and little else must fit a page of an index. */
const NAME_MAX = 512
/** Most items in one call. */
export const BATCH_MAX = 10_000
export const BODY_MAX_BYTES: number = 16 * 1024 * 1024
/** A state is read and written whole by many; it is meant to be small. */
const STATE_MAX = 1_000_000
/** Ten years and their leap days. */
const DURATION_MAX_MS: number = 3_653 * 86_400_000

export function checkIds(what: string, ids: readonly string[]): void {
  const bad = ids.find((id) => !isName(id))
  if (bad !== undefined) throw refused(what, `expected 1 to ${ID_MAX} characters`, bad)
}

export function checkName(what: string, name: string): void {
  if (!isName(name, NAME_MAX)) throw refused(what, `expected 1 to ${NAME_MAX} characters`, name)
}

export function checkState(value: string): void {
  if (value.length > STATE_MAX || !isKept(value))
    throw refused('value', `expected well-formed text of up to ${STATE_MAX}`, value)
}

export function checkBatch(batch: readonly unknown[]): void {
  if (batch.length > BATCH_MAX) throw refused('batch', `expected up to ${BATCH_MAX}`, batch.length)
}

export function checkBody(body: Uint8Array): void {
  if (body.byteLength <= BODY_MAX_BYTES) return
  throw refused('body', `expected up to ${BODY_MAX_BYTES} bytes`, body.byteLength)
}

export function checkMs(what: string, ms: number): void {
  const fits = ms >= 0 && ms <= DURATION_MAX_MS
  if (!fits) throw refused(what, `expected 0 to ${DURATION_MAX_MS} ms`, ms)
}

export function checkMax(what: string, max: number): void {
  const fits = Number.isInteger(max) && max >= 1
  if (!fits) throw refused(what, 'expected a whole number from 1', max)
}

export function refused(what: string, expected: string, got: unknown): OptionsError {
  return new OptionsError('store', [`${what}: ${expected}, got ${show(got)}`])
}
