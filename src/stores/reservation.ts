import type { RememberedKey } from '../model/envelope.ts'
import type { KeyedMessage, Reservation } from '../store/key-memory.ts'

/** A key that is reserved or remembered now. */
export interface HeldKey {
  readonly id: string
  readonly fingerprint: string | undefined
  /** False for one that is only reserved. */
  readonly confirmed: boolean
}

/**
 * What becomes of a message whose keys are held like this. What is remembered decides before what is only reserved: a
 * conflict is final for the sender, and the one that holds a reservation may still fail.
 *
 * @param find only what has not ended
 */
export function reservationOf(
  { id, keys }: KeyedMessage,
  find: (key: RememberedKey) => HeldKey | undefined,
): Reservation {
  const held = keys.flatMap((key) => {
    const holder = find(key)
    return holder === undefined ? [] : [{ key, holder }]
  })
  const confirmed = held.filter(({ holder }) => holder.confirmed)
  if (confirmed.some(({ holder }) => holder.id === id)) return { as: 'duplicate', id }
  const conflict = confirmed.find(({ key, holder }) => isOther(key, holder))
  if (conflict) return { as: 'conflict', id: conflict.holder.id }
  const first = confirmed[0]
  if (first) return { as: 'duplicate', id: first.holder.id }
  const other = held.find(({ holder }) => holder.id !== id)
  return other ? { as: 'held', id: other.holder.id } : { as: 'reserved' }
}

function isOther(key: RememberedKey, { fingerprint }: HeldKey): boolean {
  return key.kind === 'idempotency' && key.fingerprint !== fingerprint
}
