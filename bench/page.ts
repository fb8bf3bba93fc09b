import type { Contender, FigureSpec, Question } from './contender.ts'
import type { Asking, Machine, Outcome, Results } from './outcome.ts'
import { type Summary, summary } from './statistics.ts'

const ALONE = 'beside the client alone'
const OTHER = 'beside the best other'

/** docs/benchmarks.md. */
export function page(results: Results): string {
  const { machine, date } = results
  const postgres = machine.postgres === undefined ? '' : `, Postgres ${machine.postgres}`
  return `# Benchmarks

Written by \`npm run bench\` on ${date}; the numbers of every round are in \`bench/results/${date}.json\`.

- Machine: ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.platform}, Node ${machine.node}${postgres}; server and clients share it.
- Several rounds of messages of about 200 bytes (each question says how many), the contenders in turn within each round,
  each in its own process with an empty database. A cell is the median, then the range over the rounds.
- Millrace checks each payload with a schema (zod) before it stores anything; none of the other queues checks any.
- The last columns compare each of our figures with the broker's client alone, and with the best of the other queues; both
  have the same durability (2x is twice as good, 0.8x is a fifth less).
- Absolute numbers depend on the machine and its disk and move by a factor of two on a busy one; the ratios are what to read.

Run it: \`npm run bench\`; less of it: \`npm run bench -- --rounds 1 --messages 20000 --question drain --backend sqlite --dry\`, which prints its tables;
without \`--dry\` this page and its results are written anew. Questions that a run does not ask keep their last answers, and so do stores. The other queues are installed into \`bench/peers\` the first time; Postgres is found or started as for the tests, a broker is started for the run;
one that is not at hand is left out and named. All brokers: \`npm run bench -- --backend redis --backend nats --backend rabbitmq --backend kafka --backend sqs\`.

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
  const hasRaw = outcomes.some(({ contender }) => contender.raw)
  const head = ['store', 'contender', ...units, ...(hasRaw ? [ALONE] : []), OTHER]
  const rows = outcomes.map((outcome) => {
    const { contender } = outcome
    const cells = question.figures.map(({ name }) => cell(values(outcome, name), outcome))
    return [
      contender.backend,
      contender.label + mark(contender),
      ...cells,
      ...(hasRaw ? [ratios(outcome, outcomes, true)] : []),
      ratios(outcome, outcomes, false),
    ]
  })
  const asked = askings(outcomes).map((some) => ` ${how(question, some, results.machine)}`)
  return `## ${question.title}\n\n${question.how}${asked.join('')}\n\n${rowOf(head)}\n${rowOf(head.map(() => '---'))}\n${rows.map(rowOf).join('\n')}\n\n`
}

/** The outcomes of each run, in the order of the page. */
function askings(outcomes: readonly Outcome[]): readonly (readonly Outcome[])[] {
  return [...Map.groupBy(outcomes, ({ asking }) => JSON.stringify(asking)).values()]
}

function how({ share }: Question, outcomes: readonly Outcome[], machine: Machine): string {
  const [first] = outcomes
  if (first === undefined) return ''
  const { date, rounds, messages, load } = first.asking
  const limit =
    share === 0 ? '' : ` of up to ${Math.round(messages * share).toLocaleString('en')} messages`
  const stores = [...new Set(outcomes.map(({ contender }) => contender.backend))].join(', ')
  return `${rounds} ${rounds === 1 ? 'round' : 'rounds'}${limit} on ${date} (${stores}); load average ${load.join(' before, ')} after.${busy(first.asking, machine)}`
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

function ratios(outcome: Outcome, outcomes: readonly Outcome[], toRaw: boolean): string {
  if (!outcome.contender.ours) return ''
  const { backend, durability } = outcome.contender
  const others = outcomes.filter(
    ({ contender }) =>
      !contender.ours &&
      (contender.raw ?? false) === toRaw &&
      contender.backend === backend &&
      contender.durability === durability,
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
