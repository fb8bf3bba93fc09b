import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { projectFiles, ROOT, read } from '../source-files.ts'

const TSC = 'node_modules/typescript/bin/tsc'

async function tsc(args: readonly string[]): Promise<string> {
  const run = promisify(execFile)(process.execPath, [TSC, '--pretty', 'false', ...args], {
    cwd: ROOT,
    maxBuffer: 10_000_000,
  })
  return await run.then(
    ({ stdout }) => stdout,
    (error: unknown) =>
      typeof error === 'object' && error !== null && 'stdout' in error
        ? String(error.stdout)
        : String(error),
  )
}

test('The whole project compiles, and every expected error of test/types is one.', async () => {
  assert.equal(await tsc(['--noEmit', '-p', 'tsconfig.json']), '')
})

test('The package builds with types that each file can state alone.', async () => {
  assert.equal(await tsc(['--noEmit', '-p', 'tsconfig.build.json']), '')
})

test('The compiled files expect errors, so that a mistake which compiles is noticed.', () => {
  const expected = projectFiles(/^test\/types\/.*\.ts$/).flatMap((file) => [
    ...read(file).matchAll(/@ts-expect-error \w+/g),
  ])
  assert.ok(expected.length >= 20, `${expected.length} expected errors`)
})
