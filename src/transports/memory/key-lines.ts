import type { HaltedKey } from '../../transport/halted-keys.ts'
import type { Entry } from './entry.ts'
import { type Heap, heap } from './heap.ts'

/**
 * Of each ordering key one message stands in a line of its queue, its head; what was sent after it waits behind it, in the
 * order sent, until the head has ended. A head that waits (a delay, a retry) or is in flight keeps the others waiting, and so
 * does one that died and halted its key.
 */
export interface KeyLines {
  /** True when it may stand in line: it has no key, or is its key's head now. Else it waits here. */
  enter(entry: Entry): boolean
  /** It has ended, head or not; answers the next head of its key, which may stand in line now. */
  leave(entry: Entry): Entry | undefined
  /** It has died: nothing of its key goes on until it enters again, or `skip`. */
  halt(entry: Entry, now: number): void
  /** The next head of a key that was halted by this message; it may stand in line now. */
  skip(key: string, messageId: string): Entry | undefined
  halted(key: string): HaltedKey | undefined
  /** Ascending. */
  haltedKeys(): readonly string[]
  /** How many wait behind a head. */
  readonly size: number
}

interface KeyLine {
  head: Entry | undefined
  halt: Halt | undefined
  readonly behind: Heap<Entry>
}

interface Halt {
  readonly messageId: string
  readonly haltedAt: number
}

export function keyLines(): KeyLines {
  const lines = new Map<string, KeyLine>()
  let size = 0
  const advance = (key: string, line: KeyLine): Entry | undefined => {
    line.head = line.behind.pop()
    if (line.head === undefined) lines.delete(key)
    else size -= 1
    return line.head
  }
  const lineOf = ({ envelope }: Entry): readonly [string, KeyLine] | undefined => {
    const { orderingKey } = envelope
    const line = orderingKey === undefined ? undefined : lines.get(orderingKey)
    return orderingKey === undefined || line === undefined ? undefined : [orderingKey, line]
  }
  return {
    get size() {
      return size
    },
    enter(entry) {
      const { orderingKey, id } = entry.envelope
      if (orderingKey === undefined) return true
      const line = lines.get(orderingKey) ?? newLine()
      lines.set(orderingKey, line)
      const isFree = line.head === undefined && line.halt === undefined
      if (isFree || line.head === entry || line.halt?.messageId === id) {
        line.head = entry
        line.halt = undefined
        return true
      }
      line.behind.push(entry)
      size += 1
      return false
    },
    leave(entry) {
      const found = lineOf(entry)
      if (found === undefined) return undefined
      const [key, line] = found
      if (line.head === entry) return advance(key, line)
      line.behind.remove(entry)
      size -= 1
      return undefined
    },
    halt(entry, now) {
      const line = lineOf(entry)?.[1]
      if (line === undefined) return
      line.head = undefined
      line.halt = { messageId: entry.envelope.id, haltedAt: now }
    },
    skip(key, messageId) {
      const line = lines.get(key)
      if (line?.halt?.messageId !== messageId) return undefined
      line.halt = undefined
      return advance(key, line)
    },
    halted(key) {
      const line = lines.get(key)
      return line?.halt && { key, ...line.halt, waiting: line.behind.items.length }
    },
    haltedKeys: () => [...lines].flatMap(([key, { halt }]) => (halt ? [key] : [])).sort(),
  }
}

function newLine(): KeyLine {
  return { head: undefined, halt: undefined, behind: heap<Entry>((a, b) => a.seq < b.seq) }
}
