/** What became of one promise on one backend. `conformance({ onResult })` hands these out. */
export interface Result {
  /** The harness's name: `postgres 18`. */
  readonly backend: string
  readonly family: string
  readonly title: string
  readonly outcome: 'kept' | 'broken' | 'deviates'
  /** Of a known deviation. */
  readonly reason?: string
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
  const rows = families.map((family) => [
    family,
    ...backends.map((backend) => cell(results.filter(is({ family, backend })))),
  ])
  return [
    table(['Promises', ...backends], rows),
    ...deviations(results),
    ...families.map((family) => familyTable(family, backends, results.filter(is({ family })))),
  ].join('\n\n')
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

function deviations(results: readonly Result[]): readonly string[] {
  const known = results.filter((result) => result.outcome === 'deviates')
  if (known.length === 0) return []
  const lines = known.map(
    ({ backend, family, title, reason }) =>
      `- ${backend}, ${family}: ${title} (${reason ?? 'no reason given'})`,
  )
  return ['Known deviations:', lines.join('\n')]
}

const marks: Record<Result['outcome'], string> = {
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

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)]
}
