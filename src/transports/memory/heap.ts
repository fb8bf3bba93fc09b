/**
 * What a heap needs of its items: a place to note where they are, so that any of them can be taken
 * out.
 */
export interface Slotted {
  slot: number
}

/** A binary heap; everything is O(log n). An item may be in one heap at a time. */
export interface Heap<T extends Slotted> {
  readonly items: readonly T[]
  push(item: T): void
  peek(): T | undefined
  pop(): T | undefined
  remove(item: T): void
}

export function heap<T extends Slotted>(before: (a: T, b: T) => boolean): Heap<T> {
  const items: T[] = []

  const put = (item: T, slot: number): void => {
    items[slot] = item
    item.slot = slot
  }
  const up = (item: T, from: number): void => {
    let slot = from
    while (slot > 0) {
      const parentSlot = (slot - 1) >>> 1
      const parent = items[parentSlot] as T
      if (!before(item, parent)) break
      put(parent, slot)
      slot = parentSlot
    }
    put(item, slot)
  }
  const down = (item: T, from: number): void => {
    let slot = from
    for (;;) {
      let childSlot = 2 * slot + 1
      let child = items[childSlot]
      if (child === undefined) break
      const right = items[childSlot + 1]
      if (right !== undefined && before(right, child)) {
        child = right
        childSlot += 1
      }
      if (!before(child, item)) break
      put(child, slot)
      slot = childSlot
    }
    put(item, slot)
  }
  const remove = (item: T): void => {
    const slot = item.slot
    if (items[slot] !== item) throw new Error('the item is not in this heap')
    const last = items.pop() as T
    if (last === item) return
    const parent = items[(slot - 1) >>> 1]
    if (slot > 0 && parent !== undefined && before(last, parent)) up(last, slot)
    else down(last, slot)
  }

  return {
    items,
    push(item) {
      items.push(item)
      up(item, items.length - 1)
    },
    peek: () => items[0],
    pop() {
      const top = items[0]
      if (top !== undefined) remove(top)
      return top
    },
    remove,
  }
}
