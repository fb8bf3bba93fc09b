import type { SwappedStates, VersionedState } from '../../store/swapped-states.ts'

export function memoryStates(states: Map<string, VersionedState>): SwappedStates {
  return {
    read: async (name) => states.get(name),
    async swap(name, version, value) {
      const before = states.get(name)?.version
      if (before !== version) return undefined
      const next = (before ?? 0n) + 1n
      states.set(name, { value, version: next })
      return next
    },
  }
}
