import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conformance, type Deviation, guaranteesTable, type Result } from 'millrace/conformance'
import { memoryHarness } from '../../transports/memory-harness.ts'

const KEPT = 'An empty batch settles to nothing.'
const reason = 'tracked in issue 1'

async function runsOf(
  title: string,
  options: { readonly deviations?: readonly Deviation[]; readonly broken?: boolean },
): Promise<{ readonly results: readonly Result[]; readonly failure: unknown }> {
  const harness = memoryHarness()
  const results: Result[] = []
  const runs: (() => Promise<void>)[] = []
  await conformance({
    ...options,
    harness: options.broken
      ? { ...harness, freshQueue: () => Promise.reject(new Error('broken on purpose')) }
      : harness,
    test: (name, run) => name.endsWith(title) && runs.push(run),
    onResult: (result) => results.push(result),
  })
  const failure = await runs[0]?.().catch((error: unknown) => error)
  return { results, failure }
}

test('A promise that is kept is reported as kept.', async () => {
  const { results, failure } = await runsOf(KEPT, {})
  assert.equal(failure, undefined)
  const [{ about, ...result } = { about: undefined }] = results
  assert.deepEqual(result, { backend: 'memory', family: 'ack', title: KEPT, outcome: 'kept' })
  assert.equal(results.length, 1)
  assert.equal(about?.traits.deadLetters, 'native')
  assert.ok(about?.members.includes('transaction') && about.members.includes('browse.setPaused'))
})

test('A broken promise fails its test, and the failure names the seed.', async () => {
  const { results, failure } = await runsOf(KEPT, { broken: true })
  assert.match(String(failure), /broken on purpose \(seed 1\)/)
  assert.equal(results[0]?.outcome, 'broken')
})

test('A known deviation runs, does not fail, and is reported with its reason.', async () => {
  const deviations = [{ title: KEPT, reason }]
  const { results, failure } = await runsOf(KEPT, { broken: true, deviations })
  assert.equal(failure, undefined)
  assert.equal(results[0]?.outcome, 'deviates')
  assert.equal(results[0]?.reason, reason)
})

test('A known deviation fails on the day when the promise is kept.', async () => {
  const { failure } = await runsOf(KEPT, { deviations: [{ title: KEPT, reason }] })
  assert.match(String(failure), /kept now, remove the deviation/)
})

test('A deviation from a promise that was not asked for is refused.', async () => {
  const deviations = [{ title: 'No such promise.', reason }]
  await assert.rejects(runsOf(KEPT, { deviations }), /no such promise here: "No such promise\."/)
})

test('Every promise is a sentence of its own.', async () => {
  const titles: string[] = []
  await conformance({ harness: memoryHarness(), test: (title) => titles.push(title) })
  assert.equal(new Set(titles).size, titles.length)
  assert.ok(titles.length > 140)
  for (const title of titles) assert.match(title, / · [A-Z].*\.$/)
})

test('The table of guarantees counts families and lists every promise and deviation.', () => {
  const result = (backend: string, title: string, outcome: Result['outcome']): Result => ({
    backend,
    family: 'ack',
    title,
    outcome,
    ...(outcome === 'deviates' ? { reason } : {}),
  })
  const table = guaranteesTable([
    result('memory', 'One.', 'kept'),
    result('memory', 'Two | three.', 'kept'),
    result('sqlite', 'One.', 'deviates'),
    { backend: 'memory', family: 'lease', title: 'Four.', outcome: 'broken' },
  ])
  assert.equal(
    table,
    [
      '| Promises | memory | sqlite |\n| --- | --- | --- |\n' +
        '| ack | 2/2 | 0/1 |\n| lease | 0/1 | – |',
      'Known deviations:',
      '- sqlite, ack: One. (tracked in issue 1)',
      '### ack',
      '| Promise | memory | sqlite |\n| --- | --- | --- |\n' +
        '| One. | yes | deviates |\n| Two \\| three. | yes | – |',
      '### lease',
      '| Promise | memory | sqlite |\n| --- | --- | --- |\n| Four. | **no** | – |',
    ].join('\n\n'),
  )
})
