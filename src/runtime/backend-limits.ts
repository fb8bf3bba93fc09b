import type { Problems } from '../model/problems.ts'
import type { Transport } from '../transport/transport.ts'
import type { SendOptions } from './send.ts'
import type { CheckedSendOptions } from './send-options.ts'

/** What a send can ask of a backend is in its traits; of priorities those of its queue. */
export type Backend = Pick<Transport, 'name' | 'traits'>

type Asked = Partial<Pick<CheckedSendOptions, 'delayMs' | 'readyAt' | 'priority'>> &
  Pick<SendOptions, 'idempotencyKey' | 'dedupeKey' | 'orderingKey'>

/** Names what this backend cannot do, so that nothing is silently weaker than it was asked for. */
export function refuseBeyondBackend(
  options: Asked,
  { name, traits }: Backend,
  found: Problems,
): void {
  const { priority = 0, delayMs = 0, readyAt, orderingKey } = options
  if (priority > 0 && priority >= traits.priorities) {
    found.add(
      traits.priorities === 1
        ? `priority: the queue has no priorities on ${name}, got ${priority}; leave it out, or say with priorities how many levels it has`
        : `priority: the queue has ${traits.priorities} levels, got ${priority}; expected at most ${traits.priorities - 1}`,
    )
  }
  const asked = delayMs > 0 ? 'delayMs' : 'readyAt'
  const isLater = delayMs > 0 || readyAt !== undefined
  if (traits.delay === 'none') {
    if (isLater) {
      found.add(`${asked}: ${name} ${traits.order === 'none' ? NO_WAITING : LEAVES_ORDER}`)
    }
  } else if (traits.delayLeavesOrder === true && orderingKey !== undefined && isLater) {
    found.add(`${asked}: ${name} ${LEAVES_KEY}`)
  } else if (delayMs > traits.delay.maxMs) {
    found.add(
      `delayMs: ${name} keeps a message waiting for at most ${traits.delay.maxMs} ms, got ${delayMs}; send it later, or use a database as the transport`,
    )
  }
  for (const key of ['idempotencyKey', 'dedupeKey'] as const) {
    if (traits.dedupe === 'none' && options[key] !== undefined) {
      found.add(`${key}: ${name} remembers no keys; ${GIVE_STORE}`)
    }
  }
}

const GIVE_STORE = 'give createMillrace a store that does'
const NO_WAITING = `cannot keep a message waiting; ${GIVE_STORE}`
/** A store would not help. */
const LEAVES_ORDER =
  'keeps an order, and a message that waits would leave it; leave it out, or use a queue without order'
/** Whether the key is the queue's or the send's. */
export const LEAVES_KEY: string =
  'keeps keys in order, and a message with a key that waits would leave its place; leave the delay out'
