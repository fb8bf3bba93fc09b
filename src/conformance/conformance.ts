import { seededRandom } from '../testing/seeded-random.ts'
import type { Harness } from './harness.ts'
import type { Promised, Subject } from './promise.ts'
import { families } from './promises/index.ts'
import type { Result } from './report.ts'
import { type Depth, withScope } from './scope.ts'

export interface ConformanceOptions {
  /** Registers one test: `test` of node:test, vitest, … or your own. */
  readonly test: (title: string, run: () => Promise<void>) => unknown
  readonly harness: Harness
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

/**
 * Registers a test for every promise that the transport's traits and optional members make. Await
 * it at the top of a test file: it connects once to read the traits.
 *
 * @example
 * import { test, after } from 'node:test'
 * after(() => harness.dispose())
 * await conformance({ test, harness })
 */
export async function conformance(options: ConformanceOptions): Promise<void> {
  const { harness, deviations = [] } = options
  const transport = await harness.connect()
  const subject: Subject = { traits: transport.traits, transport, harness }
  const known = new Set<string>()
  for (const family of families) {
    for (const promised of family.promises) {
      if (promised.when && !promised.when(subject)) continue
      known.add(promised.title)
      const deviation = deviations.find((entry) => entry.title === promised.title)
      const title = `${harness.name} · ${family.name} · ${promised.title}`
      options.test(title, () => runOne(options, family.name, promised, deviation))
    }
  }
  await transport.close()
  const stale = deviations.filter((deviation) => !known.has(deviation.title))
  if (stale.length > 0) {
    throw new Error(`no such promise here: ${stale.map((entry) => `"${entry.title}"`).join(', ')}`)
  }
}

async function runOne(
  options: ConformanceOptions,
  family: string,
  promised: Promised,
  deviation: Deviation | undefined,
): Promise<void> {
  const { harness, depth = 'quick', seed = 1, onResult } = options
  const failure = await failureOf(() =>
    withScope({ harness, depth, random: seededRandom(`${seed}:${promised.title}`) }, promised.keep),
  )
  const outcome = deviation ? 'deviates' : failure ? 'broken' : 'kept'
  const reason = deviation ? { reason: deviation.reason } : {}
  onResult?.({ backend: harness.name, family, title: promised.title, outcome, ...reason })
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
