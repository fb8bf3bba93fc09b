import type { Settled, Settlement } from '../../model/delivery.ts'
import { settled } from '../../model/delivery.ts'
import { lost } from '../../transport/outcomes.ts'
import type { Broker } from './broker.ts'
import type { LaneConsumer, LaneReceipt } from './lane-consumer.ts'
import { confirmed, impossible } from './settle.ts'

/** Acks go to the broker; what is given back waits here in its place, so that nothing of its key overtakes it. */
export async function settleInLanes(
  broker: Broker,
  batch: readonly Settlement[],
): Promise<readonly Settled[]> {
  const acks = new Map<LaneConsumer, [Settlement, LaneReceipt][]>()
  const outcomes = new Map<Settlement, Settled>()
  const seen = new Set<object>()
  for (const one of batch) {
    const receipt = receiptOf(one)
    if (receipt === undefined || seen.has(receipt.entry) || !receipt.consumer.isOurs(receipt)) {
      outcomes.set(one, lost)
    } else if (!isPossible(one)) outcomes.set(one, impossible)
    else {
      seen.add(receipt.entry)
      const { consumer } = receipt
      if (one.as === 'acked') acks.set(consumer, [...(acks.get(consumer) ?? []), [one, receipt]])
      else {
        consumer.hold(receipt, one.as === 'released' ? waitOf(one.delayMs, broker) : 0)
        outcomes.set(one, settled)
      }
    }
  }
  const written = [...acks].map(async ([consumer, some]) => {
    const receipts = some.map(([, receipt]) => receipt)
    const outcome = await confirmed(broker, () => consumer.ack(receipts))
    for (const [one] of some) outcomes.set(one, outcome)
  })
  await Promise.all(written)
  return batch.map((one) => outcomes.get(one) ?? lost)
}

/** There is no history here, and no shelf; layers bring both. */
function isPossible(settlement: Settlement): boolean {
  if (settlement.as === 'acked') return true
  return settlement.as === 'released' && settlement.attempt === undefined
}

/** What is held has no ack: longer than this, and the broker would end the channel and everything on it. */
export function heldMaxMs({ options }: Pick<Broker, 'options'>): number {
  return Math.floor(options.consumerTimeoutMs / 2)
}

function waitOf(delayMs: number, broker: Broker): number {
  return Number.isNaN(delayMs) ? 0 : Math.min(Math.max(0, delayMs), heldMaxMs(broker))
}

function receiptOf({ delivery }: Settlement): LaneReceipt | undefined {
  const { receipt } = delivery
  return isReceipt(receipt) ? receipt : undefined
}

function isReceipt(value: unknown): value is LaneReceipt {
  return typeof value === 'object' && value !== null && 'entry' in value && 'handing' in value
}
