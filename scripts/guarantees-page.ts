import type { Result } from 'millrace/conformance'
import { families } from '../src/conformance/promises/index.ts'
import { countsTable, deviations, marks, table } from '../src/conformance/report.ts'
import { storeFamilies } from '../src/conformance/store/promises/index.ts'
import { abilitiesTable, type Introduced, isStacking } from './guarantees-abilities.ts'

/** One line of what a run of the tests wrote down. */
type Line = Result | Introduced | { readonly servers: readonly string[] }

/** docs/guarantees.md, from what a run of the conformance kit wrote down (one JSON object a line). */
export function guaranteesPage(text: string): string {
  const lines: readonly Line[] = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
  const all = inOrder(lines.filter((line) => 'outcome' in line))
  const results = all.filter((result) => !isOfStore(result))
  const ofStores = all.filter(isOfStore)
  const introduced = lines.filter((line) => 'about' in line && !('outcome' in line)) as Introduced[]
  const servers = lines.flatMap((line) => ('servers' in line ? line.servers : []))
  const groups = groupsOf(results)
  return `${[
    HEAD,
    `${SERVERS}${servers.join('; ')}.`,
    '## What each backend brings',
    WORDS,
    abilitiesTable(introduced.toSorted(byBackend)),
    '## Promises kept',
    COUNTS,
    ...groups.flatMap(({ name, results: own }) => [
      `### ${name}`,
      countsTable(own),
      ...deviations(own),
    ]),
    ...(ofStores.length === 0
      ? []
      : ['### Stores', STORES, countsTable(ofStores), ...deviations(ofStores)]),
    '## Every promise',
    CELLS,
    ...promiseTables(results, groups),
    ...promiseTables(ofStores, groupsOf(ofStores)),
  ].join('\n\n')}\n`
}

/** The kit of stores names its families so. */
function isOfStore({ family }: Result): boolean {
  return family.startsWith('store: ')
}

/** The line that depends on the machine. */
export const SERVERS = 'Servers of this run: '

const HEAD = `# Guarantees

What each backend keeps of what Millrace promises. This page is written from a run of the conformance kit
(\`npm test\`, then \`npm run guarantees\`), and \`npm test\` fails when it says anything else than the run showed. The kit
looks from a second connection, runs with injected faults, and chooses its promises by the backend's traits.

What no backend can promise: that a handler runs once. Messages are delivered at least once, with duplicates. *Effects* happen
once when effect and record commit in one transaction, which is what \`ctx.tx\` joins (see [the glossary](glossary.md)).

What order by key does not promise: that handlers of one key never overlap. A handler that lost its claim (its worker was stopped
past its lease, and woke up) may overlap its successor. With the [inbox](guide/inbox.md) \`ctx.tx\` refuses its effect, so effects stay
in order; without the inbox nothing holds it back. The limits of both: [order](guide/order.md#what-it-does-not-promise).

Which backend for what, and what happens on each when it broke: [backends](guide/backends.md).`

const WORDS = `From what the backends of the run said of themselves. *Native*: by itself. *Layered*: a layer over it, nothing to configure.
*Needs store*: start-up asks for a [store](guide/stores.md). *Refused*: an error that names the option, the reason and what to do
instead. The last two rows are about the servers of the run, as they were configured. Larger payloads go to a blob store by the
[claim check](guide/payloads.md#large-payloads), on each of them; columns with *claim check* below are the kit with it.`

const COUNTS = `Kept of asked. \`–\`: the backend does not make these promises. Columns with \`+\` or *with* are stackings of layers that start-up
chooses; for all others the kit ran on the bare transport.`

const STORES = `What a [store](guide/stores.md) brings to a backend that lacks it is as good as the store's own promises, from a kit of their own. What
has no clock of its own goes by that of its caller.`

const CELLS = `*Yes*: all backends of the group keep it. \`–\`: none of them makes it. Otherwise the backends that differ are named; *with layers*
are all columns of the group that are stackings of them, *without layers* all others.`

interface Group {
  readonly name: string
  readonly results: readonly Result[]
}

/** What a backend's name begins with, by the name of its group; in the order of the page. */
const GROUPS: readonly (readonly [name: string, prefixes: readonly string[]])[] = [
  ['Memory and databases', ['memory', 'sqlite', 'postgres', 'pgbouncer']],
  ['Redis', ['redis', 'valkey']],
  ['RabbitMQ', ['rabbitmq']],
  ['NATS', ['nats']],
  ['SQS', ['sqs', 'elasticmq', 'fauxqs']],
  ['Kafka', ['kafka']],
]
const ORDER = GROUPS.flatMap(([, prefixes]) => prefixes)
const OTHERS = 'Others'

function groupsOf(results: readonly Result[]): readonly Group[] {
  const nameOf = ({ backend }: Result): string =>
    GROUPS.find(([, prefixes]) => prefixes.some((prefix) => backend.startsWith(prefix)))?.[0] ??
    OTHERS
  const known = [...new Set(results.map(({ family }) => family))]
  const sorted = results.toSorted((a, b) => known.indexOf(a.family) - known.indexOf(b.family))
  return [...GROUPS.map(([name]) => name), OTHERS]
    .map((name) => ({ name, results: sorted.filter((result) => nameOf(result) === name) }))
    .filter((group) => group.results.length > 0)
}

function byBackend(a: { backend: string }, b: { backend: string }): number {
  const rank = ({ backend }: { backend: string }): number => {
    const place = ORDER.findIndex((prefix) => backend.startsWith(prefix))
    return place < 0 ? ORDER.length : place
  }
  return rank(a) - rank(b) || a.backend.localeCompare(b.backend)
}

/** By backend, within one in the order of the kit. Test files, and promises within one, run side by side, so the lines come mixed. */
function inOrder(results: readonly Result[]): readonly Result[] {
  return results.toSorted((a, b) => byBackend(a, b) || placeOf(a.title) - placeOf(b.title))
}

const TITLES = new Map(
  [...families, ...storeFamilies]
    .flatMap(({ promises }) => promises.map(({ title }) => title))
    .map((title, place) => [title, place]),
)

function placeOf(title: string): number {
  return TITLES.get(title) ?? TITLES.size
}

function promiseTables(results: readonly Result[], groups: readonly Group[]): readonly string[] {
  return [...new Set(results.map(({ family }) => family))].map((family) => {
    const own = results.filter((result) => result.family === family)
    const titles = [...new Set(own.map(({ title }) => title))]
    const rows = titles
      .toSorted((a, b) => placeOf(a) - placeOf(b))
      .map((title) => [title, ...groups.map((group) => cellOf(title, group))])
    return `### ${family}\n\n${table(['Promise', ...groups.map(({ name }) => name)], rows)}`
  })
}

function cellOf(title: string, group: Group): string {
  const marked = new Map<string, string[]>()
  const all = [...new Set(group.results.map((result) => result.backend))]
  for (const backend of all) {
    const result = group.results.find((one) => one.backend === backend && one.title === title)
    const mark = result === undefined ? '–' : marks[result.outcome]
    marked.set(mark, [...(marked.get(mark) ?? []), backend])
  }
  const [most, ...rest] = [...marked].toSorted(([, a], [, b]) => b.length - a.length)
  const differing = rest.map(([mark, backends]) => `${mark}: ${named(backends, all)}`)
  return [most?.[0] ?? '–', ...differing].join('; ')
}

/** A group has more stackings than a cell can list. */
function named(backends: readonly string[], all: readonly string[]): string {
  const stackings = all.filter(isStacking)
  const others = all.filter((backend) => !isStacking(backend))
  const isEach = (each: readonly string[]): boolean =>
    each.length > 1 &&
    each.length === backends.length &&
    each.every((one) => backends.includes(one))
  if (isEach(stackings)) return 'with layers'
  return isEach(others) && stackings.length > 0 ? 'without layers' : backends.join('; ')
}

/** The columns of the tables of counts. */
export function backendsOf(page: string): readonly string[] {
  return [...page.matchAll(/^\| Promises \| (.*) \|$/gm)].flatMap(
    ([, head]) => head?.split(' | ') ?? [],
  )
}
