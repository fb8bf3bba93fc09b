import type { HeldSlot, SlotAnswer, Slots } from '../../store/slots.ts'
import { type Database, listOf, steps, wholeMs } from './database.ts'

export function redisSlots({ run, key }: Database): Slots {
  const keysOf = (pool: string): readonly string[] =>
    ['slots', 'slots-of', 'slot', 'slot-fence'].map((kind) => key(pool, kind))
  return {
    async acquire(pool, { max, maxPerKey }, batch, leaseMs) {
      const limits = [wholeMs(leaseMs), String(max ?? ''), String(maxPerKey ?? '')]
      const answers: SlotAnswer[] = []
      for (const step of steps(batch)) {
        const args = step.flatMap((one) => [one.holder, one.key ?? ''])
        const reply = await run('ACQUIRE_SLOTS', keysOf(pool), [...limits, ...args])
        answers.push(...listOf(reply).map((text) => answerOf(String(text))))
      }
      return answers
    },
    async renew(pool, slots, leaseMs) {
      const renewed: boolean[] = []
      for (const step of steps(slots)) {
        const args = [wholeMs(leaseMs), ...step.flatMap(argsOf)]
        const reply = await run('RENEW_SLOTS', keysOf(pool), args)
        renewed.push(...listOf(reply).map((one) => Number(one) === 1))
      }
      return renewed
    },
    async release(pool, slots) {
      for (const step of steps(slots)) {
        await run('RELEASE_SLOTS', keysOf(pool), step.flatMap(argsOf))
      }
    },
    async count(pool, keysMax) {
      const [held, ...pairs] = listOf(await run('COUNT_SLOTS', keysOf(pool), [String(keysMax)]))
      const keys = Array.from({ length: pairs.length / 2 }, (_, at) => ({
        key: String(pairs[2 * at]),
        held: Number(pairs[2 * at + 1]),
      }))
      return { held: Number(held), keys }
    },
  }
}

function argsOf({ holder, fence }: HeldSlot): readonly string[] {
  return [holder, String(fence)]
}

function answerOf(text: string): SlotAnswer {
  if (text === 'pool' || text === 'key') return { as: 'full', of: text }
  return { as: 'held', fence: BigInt(text) }
}
