import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AboutBackend, Result } from 'millrace/conformance'
import { backendsOf, guaranteesPage } from '../../../scripts/guarantees-page.ts'
import { kafkaTraits } from '../../../src/transports/kafka/traits.ts'
import { memoryTraits } from '../../../src/transports/memory/traits.ts'
import { redisTraits } from '../../../src/transports/redis/traits.ts'
import { fifoTraits, standardTraits } from '../../../src/transports/sqs/traits.ts'

const everything: AboutBackend = {
  traits: memoryTraits,
  members: ['transaction', 'browse.setPaused'],
}
const standard: AboutBackend = { traits: standardTraits, members: ['browse.gauge'] }
const subjects: readonly (readonly [backend: string, about: AboutBackend, titles: string])[] = [
  ['sqs fifo (a)', { ...standard, traits: fifoTraits }, 'A'],
  ['sqs standard (b)', standard, 'A'],
  ['sqs standard (a)', standard, 'AB'],
  ['sqs standard (a) + layers on sqlite', everything, 'AB'],
  ['kafka', { traits: kafkaTraits(1_048_588, true), members: [] }, 'A'],
  ['redis 7', { traits: redisTraits(false), members: ['browse.setPaused'] }, 'A'],
  ['memory', everything, 'AB'],
]

function page(): string {
  const results: readonly Result[] = subjects.flatMap(([backend, , titles]) =>
    [...titles].map((title) => ({ backend, family: 'send', title, outcome: 'kept' }) as const),
  )
  const ofStores: readonly Result[] = ['redis 7 store', 'memory store'].map((backend) => {
    return { backend, family: 'store: keys', title: 'C', outcome: 'kept' } as const
  })
  const lines = [
    ...ofStores,
    { servers: ['redis 7: 7.0.15'] },
    ...results.slice(0, 1),
    ...subjects.map(([backend, about]) => ({ backend, about })),
    ...results.slice(1),
  ]
  return guaranteesPage(lines.map((line) => JSON.stringify(line)).join('\n'))
}

/** A row of the table of abilities, by its columns. */
function abilities(row: string): Readonly<Record<string, string | undefined>> {
  const table = page().split('## What each backend brings')[1]?.split('## Promises')[0] ?? ''
  const cells = table.split('\n').map((line) => line.slice(2, -2).split(' | '))
  const columns = cells.find(([first]) => first === 'Ability') ?? []
  const found = cells.find(([first]) => first === row) ?? []
  return Object.fromEntries(columns.slice(1).map((column, i) => [column, found[i + 1]]))
}

test('The page says that without the inbox a handler that lost its claim may overlap its successor.', () => {
  const [head = ''] = page().split('## What each backend brings')
  const words = head.replaceAll('\n', ' ')
  assert.match(words, /A handler that lost its claim \([^)]*\) may overlap its successor/)
  assert.match(words, /without the inbox nothing holds it back/)
})

test('The page says who brings what, from what the backends said of themselves.', () => {
  const delayed = 'delayed sends, waits before a retry'
  assert.deepEqual(abilities(delayed), {
    memory: 'native',
    'redis 7': 'native',
    'kafka, retry: hold': 'a retry waits in its place; a send is refused',
    'kafka, retry: park': 'needs store',
    'sqs fifo (a)': 'a retry waits in its place; a send is refused',
    'sqs standard': 'needs store',
  })
  assert.equal(abilities('order')['kafka, retry: hold'], 'per key')
  assert.equal(abilities('order')['kafka, retry: park'], 'none')
  assert.equal(abilities('attempts with their reasons')['sqs fifo (a)'], 'needs store')
  assert.match(abilities('attempts with their reasons')['sqs standard'] ?? '', /^layered \(a copy/)
  assert.equal(abilities('pauses')['sqs standard'], 'with a store, else refused')
  assert.equal(abilities('effect and ack in one commit')['memory'], 'native')
  assert.match(abilities('effect and ack in one commit')['redis 7'] ?? '', /^refused/)
})

test('Each group has its own table of counts, the simplest backend first.', () => {
  assert.deepEqual(backendsOf(page()), [
    'memory',
    'redis 7',
    'sqs fifo (a)',
    'sqs standard (a)',
    'sqs standard (a) + layers on sqlite',
    'sqs standard (b)',
    'kafka',
    'memory store',
    'redis 7 store',
  ])
  assert.match(page(), /### SQS\n\n\| Promises \| sqs fifo/)
  assert.match(page(), /### Stores\n\n[^|]*\n\n\| Promises \| memory store \| redis 7 store \|/)
})

test('Every promise has one cell for a group, and who differs is named.', () => {
  assert.match(page(), /^\| A \| yes \| yes \| yes \| yes \|$/m)
  assert.match(
    page(),
    /^\| B \| yes \| – \| (–: |yes; –: |–; yes: )sqs [^|]*\| – \|$/m,
    'two of four keep it',
  )
})

test('A cell says with or without layers where these are all that differ, and names one that is alone.', () => {
  const keepers: Readonly<Record<string, string>> = {
    'rabbitmq classic': 'AD',
    'rabbitmq quorum': 'AD',
    'rabbitmq classic + store': 'ABC',
    'rabbitmq quorum + store': 'ABCD',
    'rabbitmq quorum + store + claim check': 'ABCD',
  }
  const results = Object.entries(keepers).flatMap(([backend, titles]) =>
    [...titles].map((title) => ({ backend, family: 'send', title, outcome: 'kept' })),
  )
  const shown = guaranteesPage(results.map((result) => JSON.stringify(result)).join('\n'))
  assert.match(shown, /^\| A \| yes \|$/m)
  assert.match(shown, /^\| B \| yes; –: without layers \|$/m)
  assert.match(shown, /^\| D \| yes; –: rabbitmq classic \+ store \|$/m)
  const fewer = results.filter(({ backend }) => backend !== 'rabbitmq quorum + store + claim check')
  const bare = { backend: 'rabbitmq lanes', family: 'send', title: 'A', outcome: 'kept' }
  const most = guaranteesPage([...fewer, bare].map((result) => JSON.stringify(result)).join('\n'))
  assert.match(most, /^\| C \| –; yes: with layers \|$/m)
})

test('What stores promise has tables of its own, and no part in those of backends.', () => {
  const [, every = ''] = page().split('## Every promise')
  const [backends = '', stores = ''] = every.split('### store: keys')
  assert.doesNotMatch(backends, /\| C \|/)
  assert.match(stores, /\| Promise \| Memory and databases \| Redis \|\n.*\n\| C \| yes \| yes \|/)
  assert.doesNotMatch(
    page().split('## Every promise')[0] ?? '',
    /### Memory and databases\n\n[^#]*store/,
  )
})

test('The page names the servers of the run, and nothing comes twice.', () => {
  assert.match(page(), /^Servers of this run: redis 7: 7\.0\.15\.$/m)
  const headings = page().match(/^#+ .*$/gm) ?? []
  assert.equal(new Set(headings).size, headings.length)
})
