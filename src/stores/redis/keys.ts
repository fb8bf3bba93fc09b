import type { RememberedKey } from '../../model/envelope.ts'
import type { Reply } from '../../redis/wire.ts'
import type { KeyedMessage, KeyMemory, Reservation } from '../../store/key-memory.ts'
import { type Database, listOf, steps, wholeMs } from './database.ts'

export function redisKeys({ run, key }: Database): KeyMemory {
  const keyOf = (queue: string, remembered: RememberedKey): string =>
    key(queue, `key:${remembered.kind}:${remembered.key}`)
  const keysOf = (queue: string, batch: readonly KeyedMessage[]): readonly string[] =>
    batch.flatMap(({ keys }) => keys.map((one) => keyOf(queue, one)))
  return {
    async reserve(queue, batch, holdMs) {
      const outcomes: Reservation[] = []
      for (const step of steps(batch)) {
        const keys = keysOf(queue, step)
        // One without keys is reserved wherever it goes.
        const args = keys.length === 0 ? [] : [wholeMs(holdMs), ...step.flatMap(asked)]
        const reply = keys.length === 0 ? step.map(() => '') : await run('RESERVE', keys, args)
        outcomes.push(...listOf(reply).map(reservation))
      }
      return outcomes
    },
    async confirm(queue, batch) {
      for (const step of steps(batch)) {
        const args = step.flatMap(({ id, keys }) =>
          keys.flatMap(({ fingerprint, windowMs }) => [id, fingerprint ?? '', wholeMs(windowMs)]),
        )
        await run('CONFIRM', keysOf(queue, step), args)
      }
    },
    async free(queue, batch) {
      for (const step of steps(batch)) {
        const args = step.flatMap(({ id, keys }) => keys.map(() => id))
        await run('FREE', keysOf(queue, step), args)
      }
    },
  }
}

function asked({ id, keys }: KeyedMessage): readonly string[] {
  const each = keys.flatMap(({ kind, fingerprint }) => [kind, fingerprint ?? ''])
  return [id, String(keys.length), ...each]
}

function reservation(reply: Reply): Reservation {
  const text = String(reply)
  const id = text.slice(1)
  switch (text[0]) {
    case undefined:
      return { as: 'reserved' }
    case '2':
      return { as: 'conflict', id }
    case '4':
      return { as: 'held', id }
    default:
      return { as: 'duplicate', id }
  }
}
