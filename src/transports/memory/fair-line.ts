import { fairPlace } from '../../transport/fair-share.ts'
import type { Entry } from './entry.ts'
import { type Heap, heap } from './heap.ts'

/** The ready messages of one priority that have a fair key, in the order of their places; a message gets its place when it is pushed. */
export interface FairLine extends Heap<Entry> {
  /** The one that has been ready the longest; it need not be the next. */
  oldest(): Entry | undefined
  /** Oldest first; those that may not go are passed over. */
  oldestOf(max: number, mayGo: (entry: Entry) => boolean): readonly Entry[]
}

interface Placed {
  slot: number
  readonly entry: Entry
}

interface KeyShare {
  last: number
  waiting: number
}

export function fairLine(): FairLine {
  const byPlace = heap<Entry>((a, b) => (a.place === b.place ? a.seq < b.seq : a.place < b.place))
  const byAge = heap<Placed>(({ entry: a }, { entry: b }) =>
    a.readyAt === b.readyAt ? a.seq < b.seq : a.readyAt < b.readyAt,
  )
  const placed = new Map<Entry, Placed>()
  const shares = new Map<string, KeyShare>()

  const leave = (entry: Entry): void => {
    const aged = placed.get(entry)
    if (aged !== undefined) byAge.remove(aged)
    placed.delete(entry)
    const key = keyOf(entry)
    const share = shares.get(key)
    if (share === undefined) return
    share.waiting -= 1
    if (share.waiting === 0) shares.delete(key)
  }

  return {
    items: byPlace.items,
    push(entry) {
      const share = shares.get(keyOf(entry)) ?? { last: 0, waiting: 0 }
      const front = byPlace.peek()?.place
      entry.place = fairPlace({ front, last: share.last }, entry.envelope.fairWeight)
      shares.set(keyOf(entry), { last: entry.place, waiting: share.waiting + 1 })
      byPlace.push(entry)
      const aged = { slot: -1, entry }
      placed.set(entry, aged)
      byAge.push(aged)
    },
    peek: byPlace.peek,
    pop() {
      const entry = byPlace.pop()
      if (entry !== undefined) leave(entry)
      return entry
    },
    remove(entry) {
      byPlace.remove(entry)
      leave(entry)
    },
    oldest: () => byAge.peek()?.entry,
    oldestOf(max, mayGo) {
      const seen: Placed[] = []
      const found: Entry[] = []
      while (found.length < max) {
        const aged = byAge.pop()
        if (aged === undefined) break
        seen.push(aged)
        if (mayGo(aged.entry)) found.push(aged.entry)
      }
      for (const aged of seen) byAge.push(aged)
      return found
    },
  }
}

function keyOf({ envelope }: Entry): string {
  return envelope.fairKey ?? ''
}
