import type { SwappedStates } from '../../store/swapped-states.ts'
import { type Database, listOf } from './database.ts'

export function redisStates({ run, key }: Database): SwappedStates {
  const keyOf = (name: string): readonly string[] => [key(name, 'state')]
  return {
    async read(name) {
      const [value, version] = listOf(await run('READ_STATE', keyOf(name), []))
      if (version === undefined || version === null) return undefined
      return { value: String(value), version: BigInt(String(version)) }
    },
    async swap(name, version, value) {
      const args = [version === undefined ? '' : String(version), value]
      const next = await run('SWAP_STATE', keyOf(name), args)
      return next === null ? undefined : BigInt(String(next))
    },
  }
}
