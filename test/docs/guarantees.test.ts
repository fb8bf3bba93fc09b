import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { backendsOf, guaranteesPage, SERVERS } from '../../scripts/guarantees-page.ts'
import { read } from '../source-files.ts'

const { MILLRACE_TEST_RESULTS: results, MILLRACE_TEST_COMPLETE: complete } = process.env

test('docs/guarantees.md says what this run of the kit showed.', (t) => {
  if (results === undefined || complete !== 'yes') {
    t.skip('only a run of all tests can tell whether docs/guarantees.md is true')
    return
  }
  const shown = anywhere(guaranteesPage(readFileSync(results, 'utf8')))
  const committed = anywhere(read('docs/guarantees.md'))
  const untested = backendsOf(committed).filter((name) => !backendsOf(shown).includes(name))
  if (untested.length > 0 && process.env.MILLRACE_REQUIRE !== 'all') {
    t.skip(`docs/guarantees.md also speaks of what was not tested: ${untested.join(', ')}`)
    return
  }
  const lines = new Set(committed.split('\n'))
  const news = shown.split('\n').filter((line) => !lines.has(line))
  assert.deepEqual(news, [], 'run `npm run guarantees` and read the difference')
  assert.ok(committed === shown, 'docs/guarantees.md has lines that the run did not show')
})

test('docs/guarantees.md begins with what is not promised, in the words of its script.', () => {
  const headOf = (page: string): string | undefined => page.split(SERVERS)[0]
  assert.equal(headOf(read('docs/guarantees.md')), headOf(guaranteesPage('')))
})

/** Without the versions of this machine's servers. */
function anywhere(page: string): string {
  return page.replace(new RegExp(`^${SERVERS}.*$`, 'm'), SERVERS)
}
