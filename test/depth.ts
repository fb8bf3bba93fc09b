import { depthOf } from '../scripts/test/depth.ts'

const depth = depthOf(process.env.MILLRACE_DEPTH)

/** A short run: what takes minutes is left to a push. */
export const atHome: boolean = depth === 'quick'

/** What the conformance kit knows of it: every push runs its short workloads, on every server. */
export const kitDepth: 'quick' | 'full' = depth === 'long' ? 'full' : 'quick'

/** So many messages, runs or kills; at home as for a push where `quick` is absent. */
export function byDepth(counts: {
  readonly quick?: number
  readonly full: number
  readonly long: number
}): number {
  return counts[depth] ?? counts.full
}
