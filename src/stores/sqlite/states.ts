import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import type { SwappedStates } from '../../store/swapped-states.ts'
import type { Database } from './database.ts'
import { MAKE_STATE, READ_STATE, SWAP_STATE } from './statements.ts'

export function sqliteStates({ handle, read, write }: Database): SwappedStates {
  return {
    read: (name) =>
      read(() => {
        const found = prepared(handle, READ_STATE).get(name)
        if (found === undefined) return undefined
        const { value, version } = asRow(found)
        return { value: String(value), version: BigInt(asNumber(version)) }
      }),
    swap: (name, version, value) =>
      write(() => {
        const written =
          version === undefined
            ? prepared(handle, MAKE_STATE).get(name, value)
            : prepared(handle, SWAP_STATE).get(value, name, Number(version))
        return written === undefined ? undefined : BigInt(asNumber(asRow(written).version))
      }),
  }
}
