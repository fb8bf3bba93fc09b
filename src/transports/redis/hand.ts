import type { Held } from './held.ts'

/** What one subscription holds, by claim. */
export interface Hand {
  take(all: readonly Held[]): void
  drop(held: Held): void
  /** After a part of a batch has moved to another claim. */
  move(held: Held, claim: string): void
  empty(): readonly Held[]
}

export function openHand(): Hand {
  const claims = new Map<string, Set<Held>>()
  const drop = (held: Held): void => {
    const rest = claims.get(held.claim)
    if (rest?.delete(held) && rest.size === 0) claims.delete(held.claim)
  }
  const put = (held: Held): void => {
    const rest = claims.get(held.claim)
    if (rest) rest.add(held)
    else claims.set(held.claim, new Set([held]))
  }
  return {
    take: (all) => all.forEach(put),
    drop,
    move(held, claim) {
      drop(held)
      held.claim = claim
      put(held)
    },
    empty() {
      const all = [...claims.values()].flatMap((rest) => [...rest])
      claims.clear()
      return all
    },
  }
}
