import type { Held } from './held.ts'

/** What one subscription holds, by claim. */
export interface Hand {
  take(all: readonly Held[]): void
  drop(held: Held): void
  /** After a part of a batch has moved to another claim. */
  move(held: Held, claimId: number): void
  /** Whether these are all that is still in hand of their claim, so that its row may be renewed as a whole. */
  isWhole(claimId: number, renewed: ReadonlySet<Held>): boolean
  /** Claims that have nothing left once these are settled. */
  endedBy(settled: readonly Held[]): readonly number[]
  /** Claims whose rest was acked in transactions of the user's; asked once. */
  takeLeft(): readonly number[]
  empty(): readonly Held[]
}

/** Claims with nothing but transactional acks are looked at this often at most. */
const LEFT_MAX = 1_000

export function openHand(): Hand {
  const claims = new Map<number, Set<Held>>()

  const drop = (held: Held): void => {
    const rest = claims.get(held.claimId)
    if (!rest?.delete(held)) return
    if (rest.size === 0) claims.delete(held.claimId)
  }
  const put = (held: Held): void => {
    const rest = claims.get(held.claimId)
    if (rest) rest.add(held)
    else claims.set(held.claimId, new Set([held]))
  }

  return {
    take: (all) => all.forEach(put),
    drop,
    move(held, claimId) {
      drop(held)
      held.claimId = claimId
      put(held)
    },
    isWhole(claimId, renewed) {
      for (const held of claims.get(claimId) ?? []) {
        if (!held.leaving && !renewed.has(held)) return false
      }
      return true
    },
    endedBy(settled) {
      const counts = new Map<number, number>()
      for (const held of settled) {
        if (claims.get(held.claimId)?.has(held)) {
          counts.set(held.claimId, (counts.get(held.claimId) ?? 0) + 1)
        }
      }
      return [...counts].filter(([id, count]) => claims.get(id)?.size === count).map(([id]) => id)
    },
    takeLeft() {
      const left: number[] = []
      for (const [id, rest] of claims) {
        if (left.length === LEFT_MAX) break
        if (![...rest].every((held) => held.leaving)) continue
        claims.delete(id)
        left.push(id)
      }
      return left
    },
    empty() {
      const all = [...claims.values()].flatMap((rest) => [...rest])
      claims.clear()
      return all
    },
  }
}
