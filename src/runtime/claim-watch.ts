import type { Claim } from '../model/delivery.ts'

/** Tells runs when their claim is lost. */
export interface ClaimWatch {
  /** Called at once for a claim that is lost already. */
  add(claim: Claim, lose: () => void): void
  remove(claim: Claim, lose: () => void): void
}

/**
 * One listener for each claim, however many runs share it: all of a channel or a partition do. An `addEventListener` for each
 * run walks all those before it, and stays with the signal when the run is over: a partition that was held for an hour kept
 * every message of that hour in memory.
 */
export function claimWatch(): ClaimWatch {
  const watched = new WeakMap<Claim, Set<() => void>>()

  const watch = (claim: Claim): Set<() => void> => {
    const all = new Set<() => void>()
    watched.set(claim, all)
    claim.lost.addEventListener('abort', () => callAll(all), { once: true })
    return all
  }
  return {
    add(claim, lose) {
      const all = watched.get(claim) ?? watch(claim)
      all.add(lose)
      if (claim.lost.aborted) lose()
    },
    remove: (claim, lose) => void watched.get(claim)?.delete(lose),
  }
}

function callAll(all: Set<() => void>): void {
  for (const lose of [...all]) lose()
  all.clear()
}
