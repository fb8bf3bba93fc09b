/** Who wants to know that rows were added. */
export interface Listeners {
  readonly onAdded: (listener: () => void) => () => void
  readonly tell: () => void
}

export function listeners(): Listeners {
  const all = new Set<() => void>()
  return {
    onAdded: (listener) => {
      all.add(listener)
      return () => void all.delete(listener)
    },
    tell: () => {
      for (const listener of all) listener()
    },
  }
}
