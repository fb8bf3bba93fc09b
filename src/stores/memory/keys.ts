import type { Clock } from '../../model/clock.ts'
import type { RememberedKey } from '../../model/envelope.ts'
import type { KeyedMessage, KeyMemory } from '../../store/key-memory.ts'
import { type HeldKey, reservationOf } from '../reservation.ts'
import type { EndingRows } from './ending-rows.ts'

export function memoryKeys(rows: EndingRows<HeldKey>, clock: Clock): KeyMemory {
  const hold = (
    queue: string,
    { id, keys }: KeyedMessage,
    confirmed: boolean,
    keepMs: (key: RememberedKey) => number,
  ): void => {
    const now = clock.now()
    for (const key of keys) {
      const name = nameOf(queue, key)
      if (confirmed && rows.get(name, now)?.confirmed) continue
      rows.set(name, { id, fingerprint: key.fingerprint, confirmed }, now + keepMs(key))
    }
  }
  return {
    async reserve(queue, batch, holdMs) {
      return batch.map((message) => {
        const now = clock.now()
        const outcome = reservationOf(message, (key) => rows.get(nameOf(queue, key), now))
        if (outcome.as === 'reserved') hold(queue, message, false, () => holdMs)
        return outcome
      })
    },
    async confirm(queue, batch) {
      for (const message of batch) hold(queue, message, true, (key) => key.windowMs)
    },
    async free(queue, batch) {
      const now = clock.now()
      for (const { id, keys } of batch) {
        for (const name of keys.map((key) => nameOf(queue, key))) {
          const held = rows.get(name, now)
          if (held?.id === id && !held.confirmed) rows.remove(name)
        }
      }
    },
  }
}

function nameOf(queue: string, { kind, key }: RememberedKey): string {
  return `${queue}\n${kind}\n${key}`
}
