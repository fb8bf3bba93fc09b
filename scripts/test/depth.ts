/** How deep the tests look: `quick` at home, `full` what every push must pass, `long` campaigns of hours. */
export type Depth = 'quick' | 'full' | 'long'

const DEPTHS: readonly Depth[] = ['quick', 'full', 'long']

/** @throws for a word that is none: a typing error must not test less than was asked for. */
export function depthOf(given: string | undefined): Depth {
  if (given === undefined || given === '') return 'quick'
  const depth = DEPTHS.find((one) => one === given)
  if (depth !== undefined) return depth
  throw new Error(
    `MILLRACE_DEPTH: expected ${DEPTHS.join(', ')}, got ${JSON.stringify(given)}; leave it out for quick`,
  )
}
