import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneLine, terminalJson, terminalText } from '../../src/cli/terminal-text.ts'

const STEERING = ['\u001b[2J', '\u009b2J', '\u2028', '\u202e', '\u2066', '\u200f', '\u061c']

test('what a stored text says steers no terminal and turns no line around', () => {
  for (const mark of STEERING) {
    const text = `a${mark}b`
    assert.ok(!terminalText(text).includes(mark), JSON.stringify(text))
    assert.ok(!oneLine(text).includes(mark), JSON.stringify(text))
    const json = terminalJson({ text })
    assert.ok(!json.includes(mark), json)
    assert.deepEqual(JSON.parse(json), { text })
  }
  assert.equal(terminalText('naïve – 東京 🚚'), 'naïve – 東京 🚚')
})
