import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { pgFault } from '../../sql/pg-fault.ts'
import { held, isLocked } from './locked.ts'

/** Each holds a connection while it waits. */
const SIDE_BY_SIDE = 2

/**
 * Sends that were gathered by chance, once one of them met a key that a transaction of somebody's still holds: each goes by itself, and
 * what is held answers so at once, that nobody waits for it. Those of one ordering key stay together, in their order.
 */
export async function sendApart(
  batch: readonly Envelope[],
  send: (part: readonly Envelope[]) => Promise<readonly Sent[]>,
): Promise<readonly Sent[]> {
  const outcomes: Sent[] = []
  const left = parts(batch)
  const sendOn = async (): Promise<void> => {
    for (let part = left.shift(); part !== undefined; part = left.shift()) {
      const sent = await answered(
        part.map(({ envelope }) => envelope),
        send,
      )
      for (const [at, { place }] of part.entries()) {
        const outcome = sent[at]
        if (outcome !== undefined) outcomes[place] = outcome
      }
    }
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, sendOn))
  return outcomes
}

interface Placed {
  readonly place: number
  readonly envelope: Envelope
}

/** Those without any key first: nothing can hold them but their id. */
function parts(batch: readonly Envelope[]): Placed[][] {
  const plain: Placed[] = []
  const ordered = new Map<string, Placed[]>()
  const keyed: Placed[][] = []
  for (const [place, envelope] of batch.entries()) {
    const { orderingKey, remember = [] } = envelope
    const one = { place, envelope }
    if (orderingKey !== undefined) {
      const known = ordered.get(orderingKey)
      if (known) known.push(one)
      else ordered.set(orderingKey, [one])
    } else if (remember.length > 0) keyed.push([one])
    else plain.push(one)
  }
  return [plain, ...keyed, ...ordered.values()].filter((part) => part.length > 0)
}

async function answered(
  part: readonly Envelope[],
  send: (part: readonly Envelope[]) => Promise<readonly Sent[]>,
): Promise<readonly Sent[]> {
  try {
    return await send(part)
  } catch (error) {
    const fault = pgFault(error)
    if (!isLocked(error)) return part.map(() => ({ ok: false, fault }))
    return part.map(() => held(error))
  }
}
