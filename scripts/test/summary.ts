import type { BackendReport } from '../rig/rig.ts'
import type { Totals } from './tally.ts'

export interface RunFacts {
  readonly backends: readonly BackendReport[]
  readonly totals: Totals
  readonly ranMs: number
  /** False when the caller named files: what is there was not all used. */
  readonly complete: boolean
  /** Files that this depth leaves out. */
  readonly leftOut: readonly string[]
}

const BUILT_IN: readonly BackendReport[] = [
  { name: 'memory', available: true },
  { name: 'sqlite (node:sqlite and better-sqlite3)', available: true },
]

/** What was tested, what was not and why; the last line is for machines. */
export function summary({
  backends,
  totals,
  ranMs,
  complete,
  leftOut,
}: RunFacts): readonly string[] {
  return [
    '',
    'Backends:',
    ...[...BUILT_IN, ...backends].map((backend) => backendLine(backend, complete)),
    ...skips(totals.reasons),
    ...omissions(leftOut),
    ...failed(totals.failures),
    `Took ${(ranMs / 1_000).toFixed(1)} s.`,
    verdict(totals),
  ]
}

function backendLine(backend: BackendReport, complete: boolean): string {
  const { available, version, why, command } = backend
  const name = version === undefined ? backend.name : `${backend.name} (${version})`
  if (available) return complete ? `  tested: ${name}` : `  ready for the chosen files: ${name}`
  const hint = command === undefined ? '' : `; to get it: ${command}`
  return `  not available: ${name} (${why ?? 'no reason given'}${hint})`
}

function skips(reasons: ReadonlyMap<string, number>): readonly string[] {
  if (reasons.size === 0) return []
  return ['Skipped:', ...[...reasons].map(([reason, count]) => `  ${count}: ${reason}`)]
}

function omissions(files: readonly string[]): readonly string[] {
  if (files.length === 0) return []
  return [
    'Left out at home; with MILLRACE_DEPTH=full, or by name:',
    ...files.map((file) => `  ${file}`),
  ]
}

/** Again, beside the verdict: between it and where they were shown in full may be thousands of lines. */
function failed(failures: readonly string[]): readonly string[] {
  if (failures.length === 0) return []
  return ['Failed:', ...failures.map((failure) => `  ${failure}`)]
}

type Counts = Omit<Totals, 'reasons' | 'failures'>

/** Of the process: a run that was stopped, that failed or that proved nothing has not passed. */
export function exitCodeOf({ passed, failed }: Counts, { stopped }: { stopped: boolean }): number {
  if (stopped) return 130
  return failed > 0 || passed === 0 ? 1 : 0
}

export function verdict({ passed, failed, skipped }: Counts): string {
  const skips = skipped > 0 ? `, ${skipped} skipped` : ''
  return `${passed} passed, ${failed} failed${skips}`
}
