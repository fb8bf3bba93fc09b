import type { Settled, Settlement } from '../../model/delivery.ts'
import { settled } from '../../model/delivery.ts'
import { hasCode } from '../../model/errors.ts'
import { lost } from '../../transport/outcomes.ts'
import type { Attachment } from './attachment.ts'
import type { Broker } from './broker.ts'
import type { Consumer, Held } from './consumer.ts'
import { withinLimit } from './limit.ts'
import { messageOf } from './link.ts'

/** What the broker cannot do by itself: a delayed release, an attempt that is kept, a dead letter that can be listed. */
const impossible: Settled = {
  ok: false,
  fault: { code: 'invalid', retryable: false, outcome: 'notApplied' },
}

/** Its channel went away after the ack was written: it may count, and the delivery is no longer ours in any case. */
const inDoubt = (cause: unknown): Settled => ({
  ok: false,
  fault: { code: 'lost', retryable: false, outcome: 'unknown', cause },
})

export async function settleBatch(
  broker: Broker,
  attachment: Attachment,
  batch: readonly Settlement[],
): Promise<readonly Settled[]> {
  const touched = new Set<Consumer>()
  const written = batch.map((settlement): Settled | Consumer => {
    const held = heldOf(settlement)
    if (held === undefined || !held.live || held.consumer !== attachment.consumer()) return lost
    if (!isPossible(settlement)) return impossible
    try {
      if (settlement.as === 'acked') held.consumer.ack(held)
      else held.consumer.release(held)
    } catch (error) {
      return inDoubt(error)
    }
    touched.add(held.consumer)
    return held.consumer
  })
  const taken = new Map<Consumer, Settled>()
  for (const consumer of touched) taken.set(consumer, await takenBy(broker, consumer))
  return written.map((one) => ('ok' in one ? one : (taken.get(one) ?? settled)))
}

async function takenBy(broker: Broker, consumer: Consumer): Promise<Settled> {
  try {
    await withinLimit(broker, 'settling', consumer.taken())
    return settled
  } catch (error) {
    if (hasCode(error, 'MILLRACE_UNAVAILABLE')) broker.consuming.drop(messageOf(error))
    return inDoubt(error)
  }
}

function isPossible(settlement: Settlement): boolean {
  if (settlement.as === 'acked') return true
  return (
    settlement.as === 'released' && settlement.delayMs === 0 && settlement.attempt === undefined
  )
}

function heldOf({ delivery }: Settlement): Held | undefined {
  const { receipt } = delivery
  return isHeld(receipt) ? receipt : undefined
}

function isHeld(value: unknown): value is Held {
  return typeof value === 'object' && value !== null && 'consumer' in value && 'live' in value
}
