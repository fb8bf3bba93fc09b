import type { Entry } from './entry.ts'
import { type Heap, heap } from './heap.ts'

/**
 * Of each ordering key one message stands in a line of its queue, its head; what was sent after it waits behind it, in the
 * order sent, until the head has ended. A head that waits (a delay, a retry) or is in flight keeps the others waiting.
 */
export interface KeyLines {
  /** True when it may stand in line: it has no key, or is its key's head now. Else it waits here. */
  enter(entry: Entry): boolean
  /** It has ended, head or not; answers the next head of its key, which may stand in line now. */
  leave(entry: Entry): Entry | undefined
  /** How many wait behind a head. */
  readonly size: number
}

interface KeyLine {
  head: Entry
  readonly behind: Heap<Entry>
}

export function keyLines(): KeyLines {
  const lines = new Map<string, KeyLine>()
  let size = 0
  return {
    get size() {
      return size
    },
    enter(entry) {
      const { orderingKey } = entry.envelope
      if (orderingKey === undefined) return true
      const line = lines.get(orderingKey)
      if (line === undefined) {
        lines.set(orderingKey, { head: entry, behind: heap<Entry>((a, b) => a.seq < b.seq) })
        return true
      }
      if (line.head === entry) return true
      line.behind.push(entry)
      size += 1
      return false
    },
    leave(entry) {
      const { orderingKey } = entry.envelope
      const line = orderingKey === undefined ? undefined : lines.get(orderingKey)
      if (orderingKey === undefined || line === undefined) return undefined
      if (line.head !== entry) {
        line.behind.remove(entry)
        size -= 1
        return undefined
      }
      const next = line.behind.pop()
      if (next === undefined) lines.delete(orderingKey)
      else {
        line.head = next
        size -= 1
      }
      return next
    },
  }
}
