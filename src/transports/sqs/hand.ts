import type { Held } from './held.ts'

/**
 * What one subscription has received: in hand is what it has handed out, on the tray what still waits in memory. Of a message
 * group one at a time is in hand; the others wait, so that a failure can send them back before they ran.
 */
export interface Hand {
  put(all: readonly Held[]): void
  /** Up to `max` from the tray, oldest first, groups in hand left out. */
  take(max: number): readonly Held[]
  has(held: Held): boolean
  /** It is no longer ours, or no longer there. Its group goes on. */
  drop(held: Held): void
  /** Those in hand whose leases have ended. */
  expired(now: number): readonly Held[]
  /** Takes what waits behind this one in its group off the tray, in order. */
  takeFollowers(held: Held): readonly Held[]
  takeTray(): readonly Held[]
  readonly tray: readonly Held[]
  /** Empties both, those in hand first. */
  empty(): readonly Held[]
}

export function openHand(): Hand {
  let tray: Held[] = []
  const inHand = new Set<Held>()
  const busy = new Map<string, Held>()

  const takeIf = (wanted: (held: Held) => boolean): readonly Held[] => {
    const taken = tray.filter(wanted)
    if (taken.length > 0) tray = tray.filter((held) => !taken.includes(held))
    return taken
  }

  return {
    put: (all) => void tray.push(...all),
    take: (max) => {
      let left = max
      return takeIf((held) => {
        if (left === 0 || (held.group !== undefined && busy.has(held.group))) return false
        left -= 1
        inHand.add(held)
        if (held.group !== undefined) busy.set(held.group, held)
        return true
      })
    },
    has: (held) => inHand.has(held),
    drop(held) {
      inHand.delete(held)
      if (held.group !== undefined && busy.get(held.group) === held) busy.delete(held.group)
      tray = tray.filter((each) => each !== held)
    },
    expired: (now) => [...inHand].filter(({ endsAt }) => endsAt <= now),
    takeFollowers: (held) =>
      held.group === undefined ? [] : takeIf(({ group }) => group === held.group),
    takeTray: () => takeIf(() => true),
    get tray() {
      return tray
    },
    empty() {
      const all = [...inHand, ...tray]
      inHand.clear()
      busy.clear()
      tray = []
      return all
    },
  }
}
