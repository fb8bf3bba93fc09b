/**
 * Bytes of bodies that one transaction moves or removes, unless a single one has more: SQLite answers at once, so the event loop stands
 * for all of it, and others wait for the lock. 500 bodies of 1 MB took 5 to 20 s; leases end in that time.
 */
const STEP_BYTES_MAX = 4_194_304

/** The first of these that one transaction takes: `max` of them at most, and always one. */
export function firstStep<T>(
  all: Iterable<T>,
  max: number,
  bytesOf: (one: T) => number,
): readonly T[] {
  const step: T[] = []
  let bytes = 0
  for (const one of all) {
    bytes += bytesOf(one)
    if (step.length === max || (step.length > 0 && bytes > STEP_BYTES_MAX)) break
    step.push(one)
  }
  return step
}

export interface Steps<T> {
  /** Runs one step in a transaction; the event loop turns behind it. */
  readonly write: <R>(work: () => R) => Promise<R>
  readonly max: number
  readonly bytesOf: (one: T) => number
  /** Answers what went. */
  readonly act: (step: readonly T[]) => readonly string[]
}

/** Acts on all of them in steps, each of which is whole in itself; answers what went. */
export async function inSteps<T>(
  all: readonly T[],
  { write, max, bytesOf, act }: Steps<T>,
): Promise<readonly string[]> {
  const done: string[] = []
  for (let at = 0; at < all.length; ) {
    const { tried, went } = await write(() => {
      const step = firstStep(all.slice(at, at + max), max, bytesOf)
      return { tried: step.length, went: act(step) }
    })
    at += tried
    done.push(...went)
  }
  return done
}
