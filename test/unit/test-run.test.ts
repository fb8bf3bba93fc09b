import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { startRig } from '../../scripts/rig/rig.ts'
import { depthOf } from '../../scripts/test/depth.ts'
import { exitCodeOf, summary, verdict } from '../../scripts/test/summary.ts'
import { leftOut, stages, type Wave } from '../../scripts/test/waves.ts'
import { ROOT } from '../source-files.ts'

const folder = await mkdtemp(join(tmpdir(), 'millrace-runner-'))
after(() => rm(folder, { recursive: true, force: true }))

const FILES = {
  'good.test.ts': `import { suite, test } from 'node:test'
    test('one', () => {})
    suite('more', () => test('two', () => {}))
    test('three', { skip: 'no server' }, () => {})`,
  'skipped.test.ts': `import { test } from 'node:test'
    test('one', { skip: 'no server' }, () => {})
    test('two', { skip: 'no server' }, () => {})
    test('three', { skip: true }, () => {})`,
  'bad.test.ts': `import { test } from 'node:test'
    test('fine', () => {})
    test('broken', () => { console.log('a hint'); throw new Error('the reason') })`,
  'crashed.test.ts': `throw new Error('while loading')`,
  'empty.test.ts': '',
  'late.test.ts': `import { test } from 'node:test'
    test('fine', () => {})
    process.on('exit', () => { process.exitCode = 3 })`,
  'endless.test.ts': `import { test } from 'node:test'
    test('waits', () => new Promise(() => { console.log('stop me'); setInterval(() => {}, 1_000) }))`,
} as const

/** Runs the named files as a wave of `npm test` would; in a process, because node:test refuses to nest. */
async function run(names: readonly (keyof typeof FILES)[]): Promise<string> {
  for (const name of names) await writeFile(join(folder, name), FILES[name])
  const script = `
    import { tally } from ${JSON.stringify(join(ROOT, 'scripts/test/tally.ts'))}
    import { runWave } from ${JSON.stringify(join(ROOT, 'scripts/test/wave-run.ts'))}
    const files = ${JSON.stringify(names)}.map((name) => ${JSON.stringify(`${folder}/`)} + name)
    const results = tally(${JSON.stringify(folder)}, console.log)
    const stop = new AbortController()
    const wrote = (file, output) => {
      results.wrote(file, output)
      if (output.includes('stop me')) stop.abort()
    }
    const limits = { signal: stop.signal, fileTimeoutMs: 20_000 }
    await runWave({ name: 'a', files, concurrency: 1 }, { ...results, wrote }, limits)
    const { passed, failed, skipped, reasons, failures } = results.totals()
    for (const failure of failures) console.log('Again: ' + failure)
    console.log(passed, failed, skipped, ...[...reasons].flat())`
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const main = join(folder, 'main.ts')
  await writeFile(main, script)
  const { stdout } = await promisify(execFile)(process.execPath, [main], { env, cwd: ROOT })
  return stdout
}

test('Passed and skipped tests are counted, suites are not, and the reason of a skip is kept.', async () => {
  const said = await run(['good.test.ts'])
  assert.match(
    said,
    /^ok {3}good\.test\.ts \(2 passed, 1 skipped, [\d.]+ s\)\n2 0 1 no server 1\n$/,
  )
  assert.match(await run(['skipped.test.ts']), /\n0 0 3 no server 2 no reason given 1\n$/)
})

test('A failed test is shown in full, with what its file wrote.', async () => {
  const said = await run(['bad.test.ts', 'good.test.ts'])
  assert.match(said, /^FAILED bad\.test\.ts › broken$/m)
  assert.match(said, /Error: the reason[\s\S]*at /)
  assert.match(said, /a hint/)
  assert.match(said, /^FAIL bad\.test\.ts \(1 passed, 1 failed,/m)
  assert.match(
    said,
    /\nAgain: bad\.test\.ts › broken\n {4}Error: the reason\n[\s\S]*\n3 1 1 no server 1\n$/,
  )
})

test('A file that crashes, that holds no test, or that ends badly after its tests has failed.', async () => {
  assert.match(await run(['crashed.test.ts']), /while loading[\s\S]*\n0 1 0\n$/)
  assert.match(await run(['empty.test.ts']), /it ran no test[\s\S]*\n0 1 0\n$/)
  assert.match(await run(['late.test.ts']), /FAILED late\.test\.ts[\s\S]*\n1 1 0\n$/)
})

test('A run that is stopped names what had not ended, and calls none of it failed.', async () => {
  const said = await run(['good.test.ts', 'endless.test.ts', 'bad.test.ts'])
  assert.doesNotMatch(said, /FAIL/)
  assert.match(said, /^Interrupted\. Not ended: endless\.test\.ts, bad\.test\.ts\n2 0 1/m)
})

test('The last line is the verdict, and a missing backend is named with its reason.', () => {
  const backends = [
    { name: 'postgres 18', available: true, version: '18.1' },
    { name: 'pgbouncer', available: false, why: 'not on PATH', command: 'apt-get install it' },
  ]
  const reasons = new Map([['no pooler', 2]])
  const totals = { passed: 5, failed: 0, skipped: 2, reasons, failures: [] }
  const facts = { backends, totals, ranMs: 1_000, complete: true, leftOut: ['test/slow.test.ts'] }
  const lines = summary(facts)
  assert.equal(lines.at(-1), '5 passed, 0 failed, 2 skipped')
  const postgres = 'postgres 18 (18.1)'
  const builtIn = ['memory', 'sqlite (node:sqlite and better-sqlite3)']
  for (const name of [...builtIn, postgres]) assert.ok(lines.includes(`  tested: ${name}`), name)
  // Of what a few files used nobody knows.
  const few = summary({ ...facts, complete: false })
  assert.ok(few.includes(`  ready for the chosen files: ${postgres}`))
  assert.ok(!few.some((line) => line.startsWith('  tested: ')))
  assert.ok(
    lines.includes('  not available: pgbouncer (not on PATH; to get it: apt-get install it)'),
  )
  assert.ok(lines.includes('  2: no pooler'))
  const omitted = lines.findIndex((line) => line.includes('MILLRACE_DEPTH=full'))
  assert.equal(lines[omitted + 1], '  test/slow.test.ts')
  assert.ok(!lines.includes('Failed:'))
  const failing = { ...facts, totals: { ...totals, failed: 1, failures: ['test/a.test.ts › one'] } }
  assert.deepEqual(summary(failing).slice(-4, -2), ['Failed:', '  test/a.test.ts › one'])
  assert.equal(verdict({ passed: 1, failed: 2, skipped: 0 }), '1 passed, 2 failed')
})

test('Only a run in which something passed, and nothing failed, ends with 0.', () => {
  const codeOf = (passed: number, failed: number, stopped = false): number =>
    exitCodeOf({ passed, failed, skipped: 3 }, { stopped })
  assert.deepEqual([codeOf(5, 0), codeOf(5, 1), codeOf(0, 0), codeOf(5, 0, true)], [0, 1, 1, 130])
})

/** Nobody listens there. */
const NO_NATS = { MILLRACE_TEST_NATS_URL: 'nats://127.0.0.1:1' }
const NO_ANSWER = 'no answer from the address in MILLRACE_TEST_NATS_URL'

test('A server whose address is given and does not answer is missing at home, with the reason, and no other one takes its place.', async () => {
  Object.assign(process.env, NO_NATS)
  const rig = await startRig({ require: 'available', only: ['nats'] })
  await rig.stop()
  const nats = rig.backends.find(({ why }) => why === NO_ANSWER)
  assert.deepEqual([nats?.available, rig.env], [false, {}])
})

test('A run that would test nothing, or less than was asked for, has failed.', async () => {
  const wrong: readonly (readonly [string, NodeJS.ProcessEnv, string])[] = [
    ['test/nowhere', {}, 'no test file matches test/nowhere'],
    ['test/unit/ids.test.ts', { MILLRACE_DEPTH: 'ful' }, 'MILLRACE_DEPTH: expected quick, full'],
  ]
  for (const [file, own, why] of wrong) {
    const env = { ...process.env, ...NO_NATS, MILLRACE_RIG_ONLY: 'nats', ...own }
    const args = [join(ROOT, 'scripts/test.ts'), file]
    await assert.rejects(promisify(execFile)(process.execPath, args, { env }), (error) => {
      const said = String(Reflect.get(Object(error), 'stdout'))
      assert.ok(said.startsWith(`Nothing was tested: ${why}`), said)
      assert.match(said, /\n0 passed, 1 failed\n$/)
      assert.equal(Reflect.get(Object(error), 'code'), 1)
      return true
    })
  }
})

test('Where all servers are required a missing one fails, before any test runs.', async () => {
  const env = { ...process.env, ...NO_NATS, MILLRACE_RIG_ONLY: 'nats', MILLRACE_REQUIRE: 'all' }
  const args = [join(ROOT, 'scripts/test.ts'), 'test/unit/ids.test.ts']
  await assert.rejects(promisify(execFile)(process.execPath, args, { env }), (error) => {
    const [first = '', ...more] = String(Reflect.get(Object(error), 'stdout'))
      .trimEnd()
      .split('\n')
    assert.ok(first.startsWith('Nothing was tested: ') && first.includes(NO_ANSWER), first)
    assert.deepEqual([Reflect.get(Object(error), 'code'), more], [1, ['0 passed, 1 failed']])
    return true
  })
})

test('Every test file runs in exactly one wave, heavy servers one of a kind at a time, and filters choose files.', () => {
  const all = stages(ROOT, [], 'full')
  const files = all.flat().flatMap((wave) => wave.files)
  assert.equal(new Set(files).size, files.length)
  assert.equal(files.length, globSync('test/**/*.test.ts', { cwd: ROOT }).length)
  const holds = (part: string) => (wave: Wave) => wave.files.some((file) => file.includes(part))
  const faults = all.find((stage) => stage.some(holds('/test/faults/'))) ?? []
  assert.ok(faults.length > 1 && faults.every(({ concurrency }) => concurrency === 1))
  for (const heavy of ['/faults/kafka-', '/faults/rabbitmq']) {
    assert.equal(faults.filter(holds(heavy)).length, 1, heavy)
  }
  const chosen = stages(ROOT, [import.meta.filename], 'quick').flat()
  assert.deepEqual(
    chosen.map((wave) => wave.files),
    [[import.meta.filename]],
  )
  for (const nothing of ['test/nowhere', 'test/unit/ids']) {
    assert.deepEqual(stages(ROOT, [join(ROOT, nothing)], 'full'), [])
  }
})

test('At home what is left of the faults goes on beside all others, one file at a time.', () => {
  const [first = []] = stages(ROOT, [], 'quick')
  const faults = first.filter((wave) => wave.files.some((file) => file.includes('/test/faults/')))
  assert.equal(first.length, 2)
  assert.deepEqual(
    faults.map(({ concurrency }) => concurrency),
    [1],
  )
})

test('At home the longest files are left out, by name; one that is named runs.', () => {
  const atHome = leftOut(ROOT, [], 'quick')
  const ran = (filters: readonly string[]): readonly string[] =>
    stages(ROOT, filters, 'quick')
      .flat()
      .flatMap((wave) => wave.files)
  assert.ok(atHome.length > 0)
  const every = globSync('test/**/*.test.ts', { cwd: ROOT })
  assert.equal(ran([]).length, every.length - atHome.length)
  const faults = 'test/faults/'
  assert.equal(ran([faults]).length, within(every, faults) - within(atHome, faults))
  for (const file of atHome) {
    assert.ok(!ran([]).includes(join(ROOT, file)), file)
    assert.deepEqual(ran([file]), [join(ROOT, file)])
  }
  for (const depth of ['full', 'long'] as const) assert.deepEqual(leftOut(ROOT, [], depth), [])
})

function within(files: readonly string[], folder: string): number {
  return files.filter((file) => file.startsWith(folder)).length
}

test('A depth that is none is refused: it must not test less than was asked for.', () => {
  assert.deepEqual(['', 'quick', 'full', 'long'].map(depthOf), ['quick', 'quick', 'full', 'long'])
  assert.equal(depthOf(undefined), 'quick')
  assert.throws(() => depthOf('ful'), /expected quick, full, long, got "ful"/)
})
