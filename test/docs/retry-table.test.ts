import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { explainTable } from '../../src/model/classify-error.ts'
import { retrySchedule } from '../../src/model/retry.ts'

const guide = readFileSync(new URL('../../docs/guide/retry.md', import.meta.url), 'utf8')

function classificationTable(): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|')
  const rows = explainTable.map(
    ({ family, match, errorClass, why }) =>
      `| ${family} | ${cell(match)} | ${errorClass} | ${cell(why)} |`,
  )
  return ['| family | matches | class | why |', '|---|---|---|---|', ...rows].join('\n')
}

test('the table in the guide is the table that decides', () => {
  const shown = /<!-- table: explainTable[^\n]*-->\n([\s\S]*?)\n?<!-- end -->/.exec(guide)?.[1]
  assert.equal(shown, classificationTable(), 'paste the expected text between the two comments')
})

test('the waits in the guide are those of the defaults', () => {
  const steps = retrySchedule({ attempts: 8, baseMs: 1_000, maxMs: 3_600_000 })
  for (const { attempt, maxDelayMs, totalMaxMs } of steps) {
    const row = `| ${attempt} | ${maxDelayMs / 1000} s | ${totalMaxMs / 1000} s |`
    assert.ok(guide.includes(row), row)
  }
  assert.ok(guide.includes(`| ${steps.length + 1} | dead | |`))
})
