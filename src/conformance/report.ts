import type { Traits } from '../transport/traits.ts'

/** What became of one promise on one backend. `conformance({ onResult })` hands these out. */
export interface Result {
  /** The harness's name: `postgres 18`. */
  readonly backend: string
  readonly family: string
  readonly title: string
  readonly outcome: 'kept' | 'broken' | 'deviates'
  /** Of a known deviation. */
  readonly reason?: string
  /** Of a transport: what it says of itself. The same in every result of one backend. */
  readonly about?: AboutBackend
}

/** What the kit saw of a transport before its first test. */
export interface AboutBackend {
  readonly traits: Traits
  /** The optional members that it has, those of `browse` and `shelf` as `browse.setPaused`. */
  readonly members: readonly string[]
}

/**
 * The results of any number of runs as Markdown: one row per family of promises and one column per
 * backend (kept of asked), the deviations with their reasons, then every promise with the backends
 * that keep it. A promise that a backend was not asked for, because its traits do not make it,
 * shows as `–`.
 */
export function guaranteesTable(results: readonly Result[]): string {
  const backends = unique(results.map((result) => result.backend))
  const families = unique(results.map((result) => result.family))
  return [
    countsTable(results),
    ...deviations(results),
    ...families.map((family) => familyTable(family, backends, results.filter(is({ family })))),
  ].join('\n\n')
}

/** One row per family of promises, one column per backend: kept of asked. */
export function countsTable(results: readonly Result[]): string {
  const backends = unique(results.map((result) => result.backend))
  const rows = unique(results.map((result) => result.family)).map((family) => [
    family,
    ...backends.map((backend) => cell(results.filter(is({ family, backend })))),
  ])
  return table(['Promises', ...backends], rows)
}

function is(wanted: Partial<Result>): (result: Result) => boolean {
  const { backend, family, title } = wanted
  return (result) =>
    (backend === undefined || result.backend === backend) &&
    (family === undefined || result.family === family) &&
    (title === undefined || result.title === title)
}

function cell(results: readonly Result[]): string {
  if (results.length === 0) return '–'
  const kept = results.filter((result) => result.outcome === 'kept').length
  return `${kept}/${results.length}`
}

/** The known deviations with their reasons; empty when there are none. */
export function deviations(results: readonly Result[]): readonly string[] {
  const known = results.filter((result) => result.outcome === 'deviates')
  if (known.length === 0) return []
  const lines = known.map(
    ({ backend, family, title, reason }) =>
      `- ${backend}, ${family}: ${title} (${reason ?? 'no reason given'})`,
  )
  return ['Known deviations:', lines.join('\n')]
}

export const marks: Record<Result['outcome'], string> = {
  kept: 'yes',
  broken: '**no**',
  deviates: 'deviates',
}

function familyTable(
  family: string,
  backends: readonly string[],
  results: readonly Result[],
): string {
  const rows = unique(results.map((result) => result.title)).map((title) => [
    title,
    ...backends.map((backend) => {
      const result = results.find(is({ title, backend }))
      return result ? marks[result.outcome] : '–'
    }),
  ])
  return `### ${family}\n\n${table(['Promise', ...backends], rows)}`
}

/** A table of Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)]
}
