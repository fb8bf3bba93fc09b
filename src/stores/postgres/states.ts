import type { SwappedStates } from '../../store/swapped-states.ts'
import type { Database } from './database.ts'

export function postgresStates({ sql, query }: Database): SwappedStates {
  return {
    async read(name) {
      const [row] = await query(sql.READ_STATE, [name])
      return row && { value: String(row.value), version: BigInt(String(row.version)) }
    },
    async swap(name, version, value) {
      const [row] =
        version === undefined
          ? await query(sql.MAKE_STATE, [name, value])
          : await query(sql.SWAP_STATE, [name, value, String(version)])
      return row && BigInt(String(row.version))
    },
  }
}
