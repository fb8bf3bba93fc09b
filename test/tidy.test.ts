import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { codeOf } from './code-scan.ts'
import { findInCode, projectFiles, ROOT, read } from './source-files.ts'

const sources = projectFiles(/^src\/.*\.ts$/)
const tests = projectFiles(/^test\/.*\.ts$/)
const code = projectFiles(/\.(ts|js|mjs)$/)

test('The scan sees code and nothing else.', () => {
  const text = [
    'a({ x }) // b',
    `const c = 'd' + \`e$\{f({ y: 'g' })}h\` /* i`,
    ' */ + /[j\'/"]/.test(k)',
    "l('m')",
  ].join('\n')
  for (const hidden of ['b', 'd', 'g', 'h', 'i', 'j', 'm']) {
    assert.ok(!new RegExp(`\\b${hidden}\\b`).test(codeOf(text)), `${hidden} is no code`)
  }
  for (const shown of ['a', 'c', 'f', 'k', 'l']) {
    assert.ok(new RegExp(`\\b${shown}\\b`).test(codeOf(text)), `${shown} is code`)
  }
})

test('Files stay short: none above 600 lines, and half of src/ within 120.', () => {
  const tooLong = code.filter((file) => lineCount(file) > 600)
  assert.deepEqual(tooLong, [])
  const lengths = sources.map(lineCount).sort((a, b) => a - b)
  const at = (share: number): number => lengths[Math.floor(lengths.length * share)] ?? 0
  assert.ok(at(0.5) <= 120, `median ${at(0.5)}`)
  assert.ok(at(0.9) <= 300, `p90 ${at(0.9)}`)
})

test('No file or folder has a name that says nothing.', () => {
  const empty = /(^|\/|[-.])(utils?|helpers?|common|lib|shared|managers?|services?|misc)([-./]|$)/
  assert.deepEqual(
    code.filter((file) => empty.test(file)),
    [],
  )
})

/** Where the outside world comes in; everything else is given a Clock, a random function, ids. */
const OUTSIDE: readonly {
  readonly what: RegExp
  readonly allowed: Readonly<Record<string, string>>
}[] = [
  {
    what: /\bDate\.now\b|\bnew Date\(\)|\bperformance\b|\bhrtime\b/,
    allowed: { 'src/model/clock.ts': 'the clock itself' },
  },
  {
    what: /\b(setTimeout|setInterval)\b|\bAbortSignal\.timeout\b|timers\/promises/,
    allowed: { 'src/model/clock.ts': 'the clock itself' },
  },
  {
    what: /\bMath\.random\b|\brandomUUID\b|\brandomBytes\b|\bgetRandomValues\b/,
    allowed: { 'src/runtime/millrace-options.ts': "the default of createMillrace's `random`" },
  },
  { what: /\bprocess\.env\b/, allowed: {} },
]

test('Time, timers, randomness and the environment come in as arguments.', () => {
  const inside = sources.filter((file) => !file.startsWith('src/cli/'))
  const found = OUTSIDE.flatMap(({ what, allowed }) =>
    inside.filter((file) => !(file in allowed)).flatMap((file) => findInCode(file, what)),
  )
  assert.deepEqual(found, [])
})

test('An exception that nobody uses any more is removed.', () => {
  const stale = OUTSIDE.flatMap(({ what, allowed }) =>
    Object.keys(allowed).filter((file) => findInCode(file, what).length === 0),
  )
  assert.deepEqual(stale, [])
})

test('Types tell the truth: no any, no silenced errors.', () => {
  const anys = code.flatMap((file) => findInCode(file, /[:<,|&(]\s*any\b(?!\()|\bas any\b/))
  assert.deepEqual(anys, [])
  const silenced = /@ts-(ignore|nocheck)|@ts-expect-error/
  // In these an expected error is the test.
  const found = code
    .filter((file) => !/^test\/(types\/|package\/|tidy)/.test(file))
    .filter((file) => silenced.test(read(file)))
  assert.deepEqual(found, [])
})

test('No test is switched off, singled out or promised for later.', () => {
  // `t.skip(reason)` inside a test is a finding at run time, and is reported.
  const switched =
    /\b(skip|only|todo):\s*true\b|\b(test|it|describe|suite)\.(skip|only|todo)\b|\.todo\(/
  assert.deepEqual(
    tests.flatMap((file) => findInCode(file, switched)),
    [],
  )
})

test('The source speaks the words of docs/glossary.md.', () => {
  // As whole words inside identifiers: `jobId`, `isPending`. JetStream's own fields keep their names: `num_ack_pending`.
  const banned =
    /(^|[^A-Za-z])(job|nack|(?<!\b(?:num|max)(?:_ack)?_)pending|requeue|rescue|stalled)s?(?![a-z])|[a-z](Job|Nack|Pending|Requeue|Stalled)s?(?![a-z])|\b(Job|Nack|Pending|Requeue|Stalled)s?(?![a-z])|visibilityTimeout/
  assert.deepEqual(
    sources.flatMap((file) => findInCode(file, banned)),
    [],
  )
})

const codes = [...read('src/model/errors.ts').matchAll(/^ {2}\| '(MILLRACE_\w+)'$/gm)].map(
  ([, name]) => name ?? '',
)

test('Every error code has a section in docs/errors.md, and no section is left over.', () => {
  assert.ok(codes.length > 20)
  const sections = [...read('docs/errors.md').matchAll(/^## (MILLRACE_\w+)$/gm)]
  assert.deepEqual(sections.map(([, name]) => name).sort(), [...codes].sort())
})

test('Every error code is used by the source, and only declared ones are.', () => {
  const places = [...sources, 'bin/millrace.js'].map((file) => {
    const text = read(file)
    return file === 'src/model/errors.ts' ? text.replaceAll(/^ {2}\| '.*$/gm, '') : text
  })
  const unused = codes.filter((name) => !places.some((text) => text.includes(name)))
  assert.deepEqual(unused, [])
  const named = places.flatMap((text) => [...text.matchAll(/MILLRACE_[A-Z_]*[A-Z]/g)])
  const unknown = named.map(([name]) => name).filter((name) => !codes.includes(name))
  assert.deepEqual([...new Set(unknown)], [])
})

test('No path of somebody else’s machine and no private registry is in the tree.', () => {
  const files = projectFiles(/\.(ts|js|mjs|json|jsonc|md|yml|sh)$|^\.ci\//)
  const machine = /(?<![\w./-])\/(work|root|home\/\w+|Users\/\w+)\//
  const found = files
    .filter((file) => file !== 'test/tidy.test.ts')
    .filter((file) => machine.test(read(file)) || registries(read(file)).length > 0)
  assert.deepEqual(found, [])
})

test('Format and lint find nothing.', async () => {
  const biome = 'node_modules/@biomejs/biome/bin/biome'
  const args = [biome, 'check', '--error-on-warnings', '--max-diagnostics=50', '--colors=off']
  await promisify(execFile)(process.execPath, args, { cwd: ROOT }).catch((error: unknown) => {
    assert.fail(`biome check: ${said(error)}`)
  })
})

/** Where lock files fetch from, other than the public registry. */
function registries(text: string): readonly string[] {
  const hosts = [...text.matchAll(/"resolved": "https?:\/\/([^/"]+)/g)].map(
    ([, host]) => host ?? '',
  )
  return hosts.filter((host) => host !== 'registry.npmjs.org')
}

function lineCount(file: string): number {
  return read(file).split('\n').length - 1
}

function said(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error)
  return 'stderr' in error && 'stdout' in error ? `${error.stdout}\n${error.stderr}` : String(error)
}
