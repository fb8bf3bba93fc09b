import { seededRandom } from '../testing/seeded-random.ts'
import type { Family, Promised } from './promise.ts'
import type { AboutBackend, Result } from './report.ts'
import type { Depth } from './scope.ts'

/** What every kit takes beside its harness. */
export interface RegisterOptions {
  /** Registers one test: `test` of node:test, vitest, … or your own. */
  readonly test: (title: string, run: () => Promise<void>) => unknown
  /** `quick` under a minute on a local backend; `full` before a release. Default `quick`. */
  readonly depth?: Depth
  /**
   * What the backend is known not to keep, by title. Such a test runs all the same and fails once
   * it passes.
   */
  readonly deviations?: readonly Deviation[]
  /** Same seed, same run. Default 1. Printed with every failure. */
  readonly seed?: number
  /** Called after each test; see `guaranteesTable`. */
  readonly onResult?: (result: Result) => void
}

export interface Deviation {
  readonly title: string
  /** Why, and where it is tracked. */
  readonly reason: string
}

/** The promises of one kit and how one of them is tried. */
export interface Kit<S, About> {
  readonly backend: string
  readonly families: readonly Family<S, About>[]
  readonly subject: About
  /** Goes into every result. */
  readonly about?: AboutBackend
  readonly keep: (promised: Promised<S, About>, random: () => number) => Promise<void>
}

/** Registers a test for every promise that the subject makes. */
export function registerPromises<S, About>(
  options: RegisterOptions,
  kit: Kit<S, About>,
): { refuseStale(): void } {
  const { deviations = [] } = options
  const known = new Set<string>()
  for (const family of kit.families) {
    for (const promised of family.promises) {
      if (promised.when && !promised.when(kit.subject)) continue
      known.add(promised.title)
      const deviation = deviations.find((entry) => entry.title === promised.title)
      const title = `${kit.backend} · ${family.name} · ${promised.title}`
      options.test(title, () => runOne(options, kit, { family: family.name, promised, deviation }))
    }
  }
  const stale = deviations.filter((deviation) => !known.has(deviation.title))
  return {
    refuseStale() {
      if (stale.length === 0) return
      throw new Error(
        `no such promise here: ${stale.map((entry) => `"${entry.title}"`).join(', ')}`,
      )
    },
  }
}

interface One<S, About> {
  readonly family: string
  readonly promised: Promised<S, About>
  readonly deviation: Deviation | undefined
}

async function runOne<S, About>(
  { seed = 1, onResult }: RegisterOptions,
  { backend, about, keep }: Kit<S, About>,
  { family, promised, deviation }: One<S, About>,
): Promise<void> {
  const { title } = promised
  const failure = await failureOf(() => keep(promised, seededRandom(`${seed}:${title}`)))
  const outcome = deviation ? 'deviates' : failure ? 'broken' : 'kept'
  const reason = deviation ? { reason: deviation.reason } : {}
  onResult?.({ backend, family, title, outcome, ...reason, ...(about ? { about } : {}) })
  if (deviation && !failure) {
    throw new Error(`this promise is kept now, remove the deviation: ${deviation.reason}`)
  }
  if (failure && !deviation) {
    throw new Error(`${failure.message} (seed ${seed})`, { cause: failure })
  }
}

async function failureOf(run: () => Promise<void>): Promise<Error | undefined> {
  try {
    await run()
    return undefined
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
