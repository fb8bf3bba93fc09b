import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { ROOT } from '../source-files.ts'
import { DOCUMENTS, type Fence, fences } from './fences.ts'

const DEADLINE_MS = 30_000

// Inside the tree, so that snippets find `millrace` and its development packages.
await mkdir(join(ROOT, '.docs-run'), { recursive: true })
const folder = await mkdtemp(join(ROOT, '.docs-run', 'run-'))
after(() => rm(folder, { recursive: true, force: true }))

const snippets = await Promise.all(
  fences(DOCUMENTS, 'ts')
    .filter(({ text }) => /^(\/\/.*\n)*import /.test(text))
    .map(async (fence, i) => {
      // A folder for each: what a snippet writes must not meet what another wrote.
      const place = join(folder, String(i))
      await mkdir(place)
      const file = join(place, 'snippet.ts')
      await writeFile(file, fence.text)
      return { fence, place, file }
    }),
)

test('The documents have snippets.', () => {
  assert.ok(snippets.length >= 5, String(snippets.length))
})

test('Every snippet compiles.', async () => {
  const options = { extends: '../../tsconfig.json', include: ['**/*.ts'] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(options))
  const said = await run(['node_modules/typescript/bin/tsc', '--noEmit', '-p', folder], ROOT)
  assert.equal(named(said), '')
})

for (const { fence, place, file } of snippets) {
  if (fence.mark.split(' ').includes('no-run')) continue
  const name = `${fence.file}:${fence.line} runs to its end.`
  const skip = missing(fence)
  test(name, skip === undefined ? {} : { skip }, async () => {
    const args = ['--conditions=millrace-source', '--no-warnings', file]
    const said = await run(args, place, stopAfter(fence))
    assert.doesNotMatch(said, /^exit /)
    for (const line of prints(fence)) assert.ok(said.includes(`${line}\n`), `${line}: ${said}`)
  })
}

// `close` right after `send` ends before the message is received, and the reader sees nothing.
test('Every snippet with a worker waits for what it does.', () => {
  const waits = /\/\/ prints: |await \w+\.promise|await door\.close|app\.settled\(|admin\.stats\(/
  const hasty = snippets.filter(({ fence }) => {
    return fence.text.includes('app.work(') && !waits.test(fence.text)
  })
  assert.deepEqual(
    hasty.map(({ fence }) => `${fence.file}:${fence.line}`),
    [],
  )
})

/** `// prints: …` in a snippet is a whole line of its output. */
function prints({ text }: Fence): readonly string[] {
  return [...text.matchAll(/\/\/ prints: (.*)$/gm)].map(([, line = '']) => line)
}

/** A snippet that works until somebody stops it gets a Ctrl-C when it has printed what it says. */
function stopAfter(fence: Fence): readonly string[] | undefined {
  return fence.text.includes('signals: true') ? prints(fence) : undefined
}

function missing(fence: Fence): string | undefined {
  const needs = /^\/\/ @needs (\w+)/.exec(fence.text)?.[1]
  if (needs === undefined) return undefined
  assert.equal(needs, 'postgres')
  if (databaseUrl() !== undefined) return undefined
  assert.notEqual(process.env.MILLRACE_REQUIRE, 'all', 'postgres is required and not there')
  return 'postgres is not available; run through npm test'
}

function databaseUrl(): string | undefined {
  return process.env.MILLRACE_TEST_POSTGRES_18_URL ?? process.env.MILLRACE_TEST_POSTGRES_URL
}

/** What it wrote; begins with `exit` when it failed. */
async function run(
  args: readonly string[],
  cwd: string,
  stopAfter?: readonly string[],
): Promise<string> {
  const env = { ...process.env, DATABASE_URL: databaseUrl() }
  const options = { cwd, env, timeout: DEADLINE_MS }
  const running = promisify(execFile)(process.execPath, [...args], options)
  let shown = ''
  let stopped = false
  running.child.stdout?.on('data', (chunk: string) => {
    shown += chunk
    if (stopped || !stopAfter?.every((line) => shown.includes(`${line}\n`))) return
    stopped = running.child.kill('SIGINT')
  })
  return await running.then(
    ({ stdout }) => stdout,
    (error: unknown) => {
      const { code, killed, stdout, stderr } = Object(error)
      const why = killed === true ? `it had not ended after ${DEADLINE_MS} ms` : String(code)
      return named(`exit ${why}: ${stdout}${stderr}`)
    },
  )
}

/** Places in the document instead of places in our temporary files. */
function named(text: string): string {
  return text.replaceAll(/\S*?(\d+)\/snippet\.ts(?:\((\d+),|:(\d+))/g, (_, i, a, b) => {
    const fence = snippets[Number(i)]?.fence
    return `${fence?.file}:${(fence?.line ?? 0) + Number(a ?? b) - 1} (`
  })
}
