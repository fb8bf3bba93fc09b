import type { Delivery, Released } from '../model/delivery.ts'
import { MillraceError } from '../model/errors.ts'
import { isGone } from '../transport/outcomes.ts'
import { untouched } from '../transport/settling.ts'
import type { Subscription } from '../transport/transport.ts'
import { isSuspect } from './suspect-marks.ts'

/** Any delay makes a release a copy. */
const COPY_DELAY_MS = 1

/**
 * A message that came without an id has another one at each handing out, so nobody could find a mark of it again. When it
 * comes a second time it is therefore not run but goes back as its copy, which has the id that was made for it, and keeps it.
 * Answers the others.
 *
 * @throws MILLRACE_UNAVAILABLE when no copy was taken and there is no other; then they went back as they were
 */
export async function namelessAsCopies(
  inner: Subscription,
  came: readonly Delivery[],
): Promise<readonly Delivery[]> {
  const nameless = came.filter(isNameless)
  if (nameless.length === 0) return came
  const others = came.filter((one) => !nameless.includes(one))
  const left = await notCopied(inner, nameless)
  if (left.length === 0) return others
  await inner.settle(left.map(untouched)).catch(() => [])
  if (others.length > 0) return others
  throw new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `${left.length} messages came again without an id, and the broker did not take the copies that would have one; they went back`,
    { retryable: true },
  )
}

/** A copy that goes on has its id for good, though nobody else may count on it; see `Past`. */
function isNameless(delivery: Delivery): boolean {
  const { idIsPassing, envelope } = delivery
  return idIsPassing === true && (envelope.copy ?? 0) === 0 && isSuspect(delivery)
}

async function notCopied(
  inner: Subscription,
  nameless: readonly Delivery[],
): Promise<readonly Delivery[]> {
  const releases = nameless.map(
    (delivery): Released => ({ as: 'released', delivery, delayMs: COPY_DELAY_MS, counted: false }),
  )
  const outcomes = await inner.settle(releases).catch(() => [])
  return nameless.filter((_, i) => !isGone(outcomes[i]))
}
