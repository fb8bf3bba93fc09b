import type { AboutBackend } from 'millrace/conformance'
import { table } from '../src/conformance/report.ts'
import { type Ability, abilitiesOf, type Need } from '../src/layers/abilities.ts'
import type { Browse } from '../src/transport/transport.ts'

/** One backend of the run and what it said of itself. */
export interface Introduced {
  readonly backend: string
  readonly about: AboutBackend
}

/**
 * What each backend brings by itself and who brings the rest: one row for each ability, one column for each backend. Backends
 * of one kind that bring the same share a column. Stackings of layers have none: they are what the cells speak of.
 */
export function abilitiesTable(backends: readonly Introduced[]): string {
  const columns = merged(backends.filter(({ backend }) => !isStacking(backend)).flatMap(chosen))
  const rows = ROWS.map(([title], i) => [title, ...columns.map(({ cells }) => cells[i] ?? '')])
  return table(['Ability', ...columns.map(({ title }) => title)], rows)
}

/** `kafka + hold`, `nats 2.15 with a store`: layers are in it. */
export function isStacking(backend: string): boolean {
  return / \+ | with /.test(backend)
}

/** What is told of a backend: of a log, with one of the two layers that its user has to name. */
interface Told extends AboutBackend {
  readonly retry?: 'hold' | 'park'
}

/** A log is no queue before its user has named how a failed message waits. */
function chosen({ backend, about }: Introduced): readonly { backend: string; about: Told }[] {
  if (about.traits.settles === 'each') return [{ backend, about }]
  return (['hold', 'park'] as const).map((retry) => ({
    backend: `${backend}, retry: ${retry}`,
    about: { ...about, retry },
  }))
}

type Row = readonly [title: string, cell: (about: Told) => string]

const ROWS: readonly Row[] = [
  ['delayed sends, waits before a retry', (about) => delays(about)],
  ['attempts with their reasons', (about) => cellOf(about, 'attempts')],
  ['dead letters that are listed and redriven', (about) => cellOf(about, 'deadLetters')],
  ['remembered keys (idempotency, dedupe)', (about) => cellOf(about, 'keys')],
  ['pauses', (about) => cellOf(about, 'pauses')],
  [
    'messages settled one by one',
    ({ traits }) => (traits.settles === 'each' ? 'native' : 'layered (ledger of each partition)'),
  ],
  [
    'effect and ack in one commit',
    ({ members }) => (members.includes('transaction') ? 'native' : 'refused (use the inbox)'),
  ],
  [
    'batches that are stored whole or not at all',
    ({ traits }) => (traits.atomicBatch ? 'native' : 'no: an error says which were stored'),
  ],
  ['priorities', (about) => priorities(about)],
  ['order', ({ traits: { order }, retry }) => (retry === 'park' ? ORDERS.none : ORDERS[order])],
  [
    'a worker that vanished is one attempt',
    (about) =>
      cellOf(about, 'crashes') === 'native' ? 'native' : 'with a store, from the second on',
  ],
  [
    'the same id again',
    ({ traits }) => (traits.remembersIds ? 'stored once' : 'a second message (use the inbox)'),
  ],
  ['capacity', ({ traits }) => traits.capacity],
  ['the largest payload without a claim check', ({ traits }) => sizeOf(traits.limits.bodyBytes)],
  ['a confirmed message is kept by', ({ traits }) => KEEPERS[traits.durability]],
]

/** Rounded down. */
function sizeOf(bytes: number): string {
  const kib = Math.floor(bytes / 1_024)
  return kib >= 1_024 && kib % 1_024 === 0 ? `${kib / 1_024} MiB` : `${kib} KiB`
}

const ORDERS = { none: 'none', perKey: 'per key', perQueue: 'per queue' } as const

const KEEPERS = {
  process: 'the process',
  disk: 'the disk',
  replicated: 'several servers',
} as const

function delays(about: Told): string {
  const { from } = abilityOf(about, 'delays') ?? {}
  if (from === 'backend' && about.traits.delay === 'none') {
    return 'a retry waits in its place; a send is refused'
  }
  return cellOf(about, 'delays')
}

function priorities(about: Told): string {
  if (abilityOf(about, 'priorities') === undefined) return 'refused'
  const cell = cellOf(about, 'priorities')
  return cell === 'native' ? `native (${about.traits.priorities})` : cell
}

const LAYERS: Partial<Record<Need, string>> = {
  attempts: 'layered (a copy, then an ack)',
  deadLetters: 'layered (a compacted topic)',
  priorities: 'layered (a queue for each level)',
}

function cellOf(about: Told, need: Need): string {
  const ability = abilityOf(about, need)
  return ability === undefined ? '–' : wordFor(ability)
}

function abilityOf({ members, ...told }: Told, need: Need): Ability | undefined {
  const pauses = members.includes('browse.setPaused') ? { browse: PAUSES } : {}
  const letters = members.some((name) => name.startsWith('letters.')) ? { letters: {} } : {}
  return abilitiesOf({ ...told, ...pauses, ...letters }).find((one) => one.need === need)
}

function wordFor({ from, need, lack }: Ability): string {
  if (from === 'backend') return 'native'
  if (from === 'layer') return LAYERS[need] ?? 'layered'
  return lack === undefined ? 'with a store, else refused' : 'needs store'
}

/** Stands for a browse that can pause; nobody calls it. */
const PAUSES: Browse = {
  gauge: () => Promise.reject(new Error('nothing to measure')),
  setPaused: async () => {},
}

interface Column {
  readonly title: string
  readonly cells: readonly string[]
}

function merged(backends: readonly { backend: string; about: Told }[]): readonly Column[] {
  const groups = new Map<string, { names: string[]; cells: readonly string[] }>()
  for (const { backend, about } of backends) {
    const cells = ROWS.map(([, cell]) => cell(about))
    const key = JSON.stringify([backend.split(/\W/, 1), cells])
    const group = groups.get(key) ?? { names: [], cells }
    if (!group.names.includes(backend)) group.names.push(backend)
    groups.set(key, group)
  }
  const found = [...groups.values()].map(({ names, cells }) => ({
    title: nameOf(names),
    names,
    cells,
  }))
  const isTaken = (title: string): boolean => found.filter((one) => one.title === title).length > 1
  return found.map(({ title, names, cells }) => ({
    title: isTaken(title) ? names.join('; ') : title,
    cells,
  }))
}

/** The words that all names begin with. */
function nameOf([first = '', ...others]: readonly string[]): string {
  const words = first.split(' ')
  const differs = words.findIndex((word, i) => others.some((name) => name.split(' ')[i] !== word))
  return differs > 0 ? words.slice(0, differs).join(' ').replace(/,$/, '') : first
}
