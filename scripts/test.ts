// Starts the servers that tests need, runs test/**/*.test.ts, stops the servers, says what was tested.
//   npm test                          all of it
//   npm test -- test/unit test/a.test.ts     these folders and files
//   MILLRACE_DEPTH=full npm test      what every push must pass: also the files that take longest (quick is the default)
//   MILLRACE_DEPTH=long npm test      campaigns of hours
//   MILLRACE_REQUIRE=all npm test     a missing server fails (CI)
//   MILLRACE_RIG_ONLY=postgres,redis npm test -- test/a.test.ts     only these servers
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BackendReport, familiesOf } from './rig/backend.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { type Depth, depthOf } from './test/depth.ts'
import { exitCodeOf, summary, verdict } from './test/summary.ts'
import { tally } from './test/tally.ts'
import { runWave } from './test/wave-run.ts'
import { leftOut, stages } from './test/waves.ts'

const ROOT = join(import.meta.dirname, '..')
const NOTHING_PASSED = { passed: 0, failed: 1, skipped: 0 }

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => interrupted.abort(new Error(`stopped by ${signal}`)))
}

process.exitCode = await main(process.argv.slice(2))

async function main(filters: readonly string[]): Promise<number> {
  let depth: Depth
  try {
    depth = depthOf(process.env.MILLRACE_DEPTH)
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
  const plan = stages(ROOT, filters, depth)
  if (plan.length === 0) return refuse(`no test file matches ${filters.join(' ')}`)
  const required = process.env.MILLRACE_REQUIRE === 'all' ? 'all' : 'available'
  let rig: Rig
  try {
    const { MILLRACE_RIG_ONLY: list } = process.env
    rig = await startRig({
      require: required,
      only: list ? familiesOf(list) : undefined,
      further: depth !== 'quick' || filters.length > 0,
    })
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
  try {
    return await runAll(plan, rig, filters, depth)
  } finally {
    await rig.stop()
  }
}

async function runAll(
  plan: ReturnType<typeof stages>,
  rig: Rig,
  filters: readonly string[],
  depth: Depth,
): Promise<number> {
  // The test processes inherit these, and those that they start: hundreds, each of which would compile the sources anew.
  Object.assign(process.env, rig.env, {
    NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'millrace-tests'),
    MILLRACE_DEPTH: depth,
    MILLRACE_TEST_BACKENDS: JSON.stringify(rig.backends),
    MILLRACE_TEST_RESULTS: freshResults(rig.backends),
    MILLRACE_TEST_COMPLETE: filters.length === 0 ? 'yes' : 'no',
  })
  const startedAt = Date.now()
  const results = tally(ROOT, console.log)
  const limits = {
    signal: interrupted.signal,
    fileTimeoutMs: depth === 'long' ? 7_200_000 : 900_000,
  }
  for (const stage of plan) {
    if (interrupted.signal.aborted) break
    await Promise.all(stage.map((wave) => runWave(wave, results, limits)))
  }
  const totals = results.totals()
  const { backends } = rig
  const ranMs = Date.now() - startedAt
  const complete = filters.length === 0
  const facts = { backends, totals, ranMs, complete, leftOut: leftOut(ROOT, filters, depth) }
  for (const line of summary(facts)) console.log(line)
  return exitCodeOf(totals, { stopped: interrupted.signal.aborted })
}

/** A file to which conformance runs append what they saw; docs/guarantees.md is written from it. */
function freshResults(backends: readonly BackendReport[]): string {
  const folder = join(ROOT, '.test-results')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'conformance.jsonl')
  const servers = backends
    .filter(({ available }) => available)
    .map(({ name, version }) => (version === undefined ? name : `${name}: ${version}`))
  const { node, sqlite } = process.versions
  writeFileSync(
    file,
    `${JSON.stringify({ servers: [`Node ${node}`, `SQLite ${sqlite}`, ...servers] })}\n`,
  )
  return file
}

function refuse(why: string): number {
  console.log(`Nothing was tested: ${why}`)
  console.log(verdict(NOTHING_PASSED))
  return 1
}
