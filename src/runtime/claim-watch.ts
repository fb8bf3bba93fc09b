/** Tells runs when their claim is lost. */
export interface ClaimWatch {
  /** Called at once for a claim that is lost already. */
  add(lost: AbortSignal, lose: () => void): void
  remove(lost: AbortSignal, lose: () => void): void
}

/**
 * One listener for each signal, however many runs share it: all of a channel or a partition do. An `addEventListener` for each
 * run walks all those before it, and stays with the signal when the run is over: a partition that was held for an hour kept
 * every message of that hour in memory.
 */
export function claimWatch(): ClaimWatch {
  const watched = new WeakMap<AbortSignal, Set<() => void>>()

  const watch = (lost: AbortSignal): Set<() => void> => {
    const all = new Set<() => void>()
    watched.set(lost, all)
    lost.addEventListener('abort', () => callAll(all), { once: true })
    return all
  }
  return {
    add(lost, lose) {
      const all = watched.get(lost) ?? watch(lost)
      all.add(lose)
      if (lost.aborted) lose()
    },
    remove: (lost, lose) => void watched.get(lost)?.delete(lose),
  }
}

function callAll(all: Set<() => void>): void {
  for (const lose of [...all]) lose()
  all.clear()
}
