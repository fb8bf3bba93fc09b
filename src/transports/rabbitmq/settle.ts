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
export const impossible: Settled = {
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
  attachment: Attachment<Consumer>,
  batch: readonly Settlement[],
): Promise<readonly Settled[]> {
  const consumer = attachment.consumer()
  const acks: Held[] = []
  const releases: Held[] = []
  const judged = batch.map((settlement): Settled | undefined => {
    const held = heldOf(settlement)
    if (held === undefined || !held.live || held.consumer !== consumer) return lost
    if (!isPossible(settlement)) return impossible
    held.live = false
    const list = settlement.as === 'acked' ? acks : releases
    list.push(held)
    return undefined
  })
  if (consumer === undefined || acks.length + releases.length === 0) {
    return judged.map((one) => one ?? lost)
  }
  const written = await confirmed(broker, () => {
    for (const held of releases) consumer.release(held)
    if (acks.length > 0) consumer.ack(acks)
    return consumer.taken()
  })
  return judged.map((one) => one ?? written)
}

/** @param write resolves when the broker has taken what was written */
export async function confirmed(broker: Broker, write: () => Promise<void>): Promise<Settled> {
  try {
    await withinLimit(broker, 'settling', write())
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
