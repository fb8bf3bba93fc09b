import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../source-files.ts'

/** As on another Node: its version is all that is looked at. */
function runAs(version: string, file: string) {
  const disguise = `Object.defineProperty(process, 'versions', {
    value: { ...process.versions, node: '${version}' },
  })`
  const args = [
    '--conditions=millrace-source',
    '--disable-warning=ExperimentalWarning',
    `--import=data:text/javascript,${encodeURIComponent(disguise)}`,
    join(ROOT, file),
    '--version',
  ]
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  return { status, stderr }
}

for (const [file, status] of [
  ['bin/millrace.js', 2],
  ['src/index.ts', 1],
] as const) {
  test(`${file} runs from Node 22.18 on, and says on an older one which it needs, and which it has.`, () => {
    for (const version of ['20.19.5', '21.99.0', '22.17.9']) {
      const said = runAs(version, file)
      assert.equal(said.status, status, version)
      const line = `millrace needs Node 22.18 or newer, this is ${version} [MILLRACE_UNSUPPORTED_NODE]`
      assert.ok(said.stderr.includes(line) && !/^ +at /m.test(said.stderr), said.stderr)
      // Node itself writes around what nobody catches.
      if (status === 2) assert.equal(said.stderr, `${line}\n`)
    }
    for (const version of ['22.18.0', '22.20.1', '23.0.0', '24.1.0']) {
      assert.deepEqual(runAs(version, file), { status: 0, stderr: '' }, version)
    }
  })
}
