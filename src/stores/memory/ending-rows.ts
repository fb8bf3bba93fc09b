/** Values that end at a moment; one that has ended is not there. */
export interface EndingRows<T> {
  get(name: string, now: number): T | undefined
  set(name: string, value: T, endsAt: number): void
  /** What is there keeps its end. */
  change(name: string, value: T): void
  remove(name: string): void
  /** Removes up to `max` that have ended; answers how many. */
  prune(now: number, max: number): number
}

export function endingRows<T>(): EndingRows<T> {
  const rows = new Map<string, { readonly value: T; readonly endsAt: number }>()
  return {
    get(name, now) {
      const row = rows.get(name)
      return row !== undefined && row.endsAt > now ? row.value : undefined
    },
    set: (name, value, endsAt) => void rows.set(name, { value, endsAt }),
    change(name, value) {
      const row = rows.get(name)
      if (row !== undefined) rows.set(name, { ...row, value })
    },
    remove: (name) => void rows.delete(name),
    prune(now, max) {
      let pruned = 0
      for (const [name, { endsAt }] of rows) {
        if (pruned >= max) break
        if (endsAt > now) continue
        rows.delete(name)
        pruned += 1
      }
      return pruned
    },
  }
}
