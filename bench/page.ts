import type { Contender, FigureSpec, Question } from './contender.ts'
import type { Asking, Machine, Outcome, Results } from './outcome.ts'
import { type Summary, summary } from './statistics.ts'

/** docs/benchmarks.md. */
export function page(results: Results): string {
  const { machine, date } = results
  const postgres = machine.postgres === undefined ? '' : `, Postgres ${machine.postgres}`
  return `# Benchmarks

Written by \`npm run bench\` on ${date}; the numbers of every round are in \`bench/results/${date}.json\`.

- Machine: ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.platform}, Node ${machine.node}${postgres}; server and clients share it.
- Several rounds of messages of about 200 bytes (each question says how many), the contenders in turn within each round,
  each in its own process with an empty database. A cell is the median, then the range over the rounds.
- The last column compares each figure with the best of the others that has the same durability (2x is twice as good).
- Absolute numbers depend on the machine and its disk and move by a factor of two on a busy one; the ratios are what to read.

Run it: \`npm run bench\`; less of it: \`npm run bench -- --rounds 1 --messages 20000 --question drain --backend sqlite\`. Questions
that a run does not ask keep their last answers. The other queues are installed into \`bench/peers\` the first time; Postgres is found or started as for the tests.

${table(results)}
## Settings

| contender | store | settings | durability |
|---|---|---|---|
${contenders(results).map(settingsRow).join('\n')}
`
}

/** One contender and its server together hardly load more than all cores. */
function busy({ load }: Asking, { cores }: Machine): string {
  return load[0] > cores / 2
    ? ' **Something else was running before the start: read no absolute number here, and ratios with care.**'
    : ''
}

/** One table per question. */
export function table(results: Results): string {
  const questions = new Set(results.outcomes.map(({ question }) => question))
  return [...questions].map((question) => section(question, results)).join('')
}

function section(question: Question, results: Results): string {
  const outcomes = results.outcomes.filter((outcome) => outcome.question === question)
  const units = question.figures.map(({ unit }) => unit)
  const head = ['store', 'contender', ...units, 'beside the best other']
  const rows = outcomes.map((outcome) => {
    const { contender } = outcome
    const cells = question.figures.map(({ name }) => cell(values(outcome, name), outcome))
    return [
      contender.backend,
      contender.label + mark(contender),
      ...cells,
      ratios(outcome, outcomes),
    ]
  })
  const asked = outcomes[0] ? ` ${how(question, outcomes[0].asking, results.machine)}` : ''
  return `## ${question.title}\n\n${question.how}${asked}\n\n${rowOf(head)}\n${rowOf(head.map(() => '---'))}\n${rows.map(rowOf).join('\n')}\n\n`
}

function how({ share }: Question, asking: Asking, machine: Machine): string {
  const { date, rounds, messages, load } = asking
  const limit =
    share === 0 ? '' : ` of up to ${Math.round(messages * share).toLocaleString('en')} messages`
  return `${rounds} rounds${limit} on ${date}; load average ${load.join(' before, ')} after.${busy(asking, machine)}`
}

function rowOf(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

/** The durability in one word; the settings table has the sentence. */
function mark({ durability, backend }: Contender): string {
  if (backend === 'memory') return ''
  return durability.includes('not a power cut') ? ' (not power-safe)' : ' (power-safe)'
}

function values({ figures }: Outcome, name: string): readonly number[] {
  return figures.map((one) => one[name]).filter((value) => value !== undefined)
}

function cell(numbers: readonly number[], { failures }: Outcome): string {
  if (numbers.length === 0) return failures.length > 0 ? 'failed' : '-'
  const { median, min, max }: Summary = summary(numbers)
  return `**${show(median)}** (${show(min)} to ${show(max)})`
}

function show(value: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: 3 })
}

function ratios(outcome: Outcome, outcomes: readonly Outcome[]): string {
  if (!outcome.contender.ours) return ''
  const { backend, durability } = outcome.contender
  const others = outcomes.filter(
    ({ contender }) =>
      !contender.ours && contender.backend === backend && contender.durability === durability,
  )
  return outcome.question.figures
    .map((figure) => ratio(outcome, others, figure))
    .filter((text) => text !== '')
    .join(', ')
}

function ratio(outcome: Outcome, others: readonly Outcome[], figure: FigureSpec): string {
  const mine = median(outcome, figure)
  const theirs = others.map((one) => median(one, figure)).filter((value) => value !== undefined)
  if (mine === undefined || theirs.length === 0) return ''
  const more = figure.better === 'more'
  const best = more ? Math.max(...theirs) : Math.min(...theirs)
  return `${(more ? mine / best : best / mine).toPrecision(2)}x`
}

function median(outcome: Outcome, { name }: FigureSpec): number | undefined {
  const numbers = values(outcome, name)
  return numbers.length === 0 ? undefined : summary(numbers).median
}

function contenders({ outcomes }: Results): readonly Contender[] {
  return [...new Map(outcomes.map(({ contender }) => [contender.id, contender])).values()]
}

function settingsRow({ label, backend, settings, durability }: Contender): string {
  return rowOf([label, backend, settings, durability])
}
