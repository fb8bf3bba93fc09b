import type { RememberedKey } from '../../model/envelope.ts'
import { asRow, prepared } from '../../sql/sqlite-handle.ts'
import type { KeyedMessage, KeyMemory } from '../../store/key-memory.ts'
import { type HeldKey, reservationOf } from '../reservation.ts'
import type { Database } from './database.ts'
import { FIND_KEY, FREE_KEY, HOLD_KEY } from './statements.ts'

export function sqliteKeys({ handle, now, write }: Database): KeyMemory {
  const find = (queue: string, { kind, key }: RememberedKey, at: number): HeldKey | undefined => {
    const found = prepared(handle, FIND_KEY).get(queue, kind, key, at)
    if (found === undefined) return undefined
    const { message_id, fingerprint, confirmed } = asRow(found)
    return {
      id: String(message_id),
      fingerprint: typeof fingerprint === 'string' ? fingerprint : undefined,
      confirmed: confirmed === 1,
    }
  }
  const hold = (queue: string, id: string, key: RememberedKey, held: Held): void => {
    const fingerprint = key.fingerprint ?? null
    const values = [id, fingerprint, held.confirmed ? 1 : 0, held.endsAt]
    prepared(handle, HOLD_KEY).run(queue, key.kind, key.key, ...values)
  }
  const reserve = (queue: string, message: KeyedMessage, at: number, holdMs: number) => {
    const outcome = reservationOf(message, (key) => find(queue, key, at))
    if (outcome.as !== 'reserved') return outcome
    const held = { confirmed: false, endsAt: at + holdMs }
    for (const key of message.keys) hold(queue, message.id, key, held)
    return outcome
  }
  return {
    reserve: (queue, batch, holdMs) =>
      write(() => {
        const at = now()
        return batch.map((message) => reserve(queue, message, at, holdMs))
      }),
    confirm: (queue, batch) =>
      write(() => {
        const at = now()
        for (const { id, keys } of batch) {
          for (const key of keys) {
            if (find(queue, key, at)?.confirmed) continue
            hold(queue, id, key, { confirmed: true, endsAt: at + key.windowMs })
          }
        }
      }),
    free: (queue, batch) =>
      write(() => {
        for (const { id, keys } of batch) {
          for (const { kind, key } of keys) prepared(handle, FREE_KEY).run(queue, kind, key, id)
        }
      }),
  }
}

interface Held {
  readonly confirmed: boolean
  readonly endsAt: number
}
