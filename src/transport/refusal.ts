import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { OptionsError } from '../model/errors.ts'
import { isId } from '../model/ids.ts'
import { isShare } from './fair-share.ts'
import { refused } from './outcomes.ts'
import type { Traits } from './traits.ts'

/** What a transport states about the envelopes that it takes. */
export type EnvelopeBounds = Pick<
  Traits,
  'limits' | 'delay' | 'delayLeavesOrder' | 'priorities' | 'fairness'
>

/** The latest moment that Date knows, 13 September 275760. */
export const MOMENT_MAX_MS = 8_640_000_000_000_000

/**
 * The answer to an envelope that no transport with these bounds may take, given item by item, because an error of the
 * backend fails the whole batch. Undefined when nothing stands in the way.
 */
export function refusalOf(envelope: Envelope, bounds: EnvelopeBounds): Sent | undefined {
  const { body, delayMs = 0, id, priority, readyAt } = envelope
  if (body.byteLength > bounds.limits.bodyBytes) return refused('tooLarge')
  const delayed = bounds.delay === 'none' ? isAtOnce(envelope) : isWithin(delayMs, bounds.delay)
  // The two say the same thing in two ways.
  const inPlace = bounds.delayLeavesOrder !== true || !isKeyedForLater(envelope)
  const timed = delayed && inPlace && !(delayMs > 0 && readyAt !== undefined) && isMoment(readyAt)
  const ranked = Number.isInteger(priority) && priority >= 0 && priority < bounds.priorities
  const fair = isShare(envelope) && (envelope.fairKey === undefined || bounds.fairness === true)
  return timed && ranked && fair && isId(id) ? undefined : refused('invalid')
}

function isKeyedForLater(envelope: Envelope): boolean {
  return envelope.orderingKey !== undefined && !isAtOnce(envelope)
}

function isAtOnce({ delayMs = 0, readyAt }: Envelope): boolean {
  return delayMs === 0 && readyAt === undefined
}

function isWithin(delayMs: number, { maxMs }: { readonly maxMs: number }): boolean {
  return delayMs >= 0 && delayMs <= maxMs
}

function isMoment(readyAt: number | undefined): boolean {
  return readyAt === undefined || (Number.isFinite(readyAt) && readyAt <= MOMENT_MAX_MS)
}

/** The answer to an envelope with a header that this backend's wire needs for itself. */
export function reservedHeader(name: string): Sent {
  const problem = `headers[${JSON.stringify(name)}]: reserved on the wire of this backend; take another name`
  return refused('invalid', { cause: new OptionsError('send', [problem]) })
}
