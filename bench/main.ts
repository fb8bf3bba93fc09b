import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { runInChild } from './child.ts'
import type { Contender, Figures, Question } from './contender.ts'
import { installPeers } from './install-peers.ts'
import type { Asking, Machine, Outcome, Results } from './outcome.ts'
import { page, table } from './page.ts'
import { type Places, places } from './places.ts'
import { order, type Plan, readPlan, USAGE } from './plan.ts'
import { recorded, recordedPostgres, together } from './recorded.ts'
import { startServers } from './servers.ts'

const ROOT = join(import.meta.dirname, '..')
const RESULTS = join(import.meta.dirname, 'results')
const MIN_MESSAGES = 10
/** Filling, starting and closing come on top of what a question may take. */
const GRACE_MS = 120_000

async function main(asked: Plan): Promise<void> {
  if (asked.contenders.some(({ ours }) => !ours)) await installPeers()
  const { servers, missing, stop } = await startServers(
    new Set(asked.contenders.map(({ backend }) => backend)),
  )
  for (const [backend, why] of missing) console.error(`${backend}: left out, not available: ${why}`)
  const contenders = asked.contenders.filter(({ backend }) => !missing.has(backend))
  const plan = { ...asked, contenders }
  try {
    const before = loadNow()
    const answers = await askAll(plan, places(servers))
    const { rounds, messages } = plan
    const date = new Date().toISOString().slice(0, 10)
    const asking: Asking = { date, rounds, messages, load: [before, loadNow()] }
    const outcomes = answers.map((answer) => ({ ...answer, asking }))
    const results = { date, machine: await describeMachine(servers.postgres), outcomes }
    if (plan.dry) console.log(table(results))
    else write({ ...results, outcomes: together(recorded(lastResults()), outcomes) })
  } finally {
    await stop()
  }
}

type Answers = Omit<Outcome, 'asking'>

async function askAll(plan: Plan, where: Places): Promise<readonly Answers[]> {
  const outcomes = new Map<string, Answers & { figures: Figures[]; failures: string[] }>()
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const question of plan.questions) {
      for (const contender of order(plan, question, round)) {
        const key = `${question.id} ${contender.id}`
        const outcome = outcomes.get(key) ?? { question, contender, figures: [], failures: [] }
        outcomes.set(key, outcome)
        const line = `round ${round + 1}, ${question.id}, ${contender.id}: `
        try {
          const figures = await askOne(plan, question, contender, where)
          outcome.figures.push(figures)
          console.error(line + JSON.stringify(figures))
        } catch (error) {
          const why = error instanceof Error ? error.message : String(error)
          outcome.failures.push(why)
          console.error(`${line}failed: ${why}`)
        }
      }
    }
  }
  return [...outcomes.values()]
}

async function askOne(
  plan: Plan,
  question: Question,
  contender: Contender,
  where: Places,
): Promise<Figures> {
  const messages = Math.max(MIN_MESSAGES, Math.round(plan.messages * question.share))
  const { limitMs } = question
  return await where.with(contender, (place) =>
    runInChild(
      {
        contender: contender.id,
        place,
        work: { kind: 'question', question: question.id, messages, limitMs },
      },
      limitMs + GRACE_MS,
    ),
  )
}

async function describeMachine(postgresUrl: string | undefined): Promise<Machine> {
  return {
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    postgres:
      postgresUrl === undefined
        ? recordedPostgres(lastResults())
        : await postgresVersion(postgresUrl),
  }
}

function loadNow(): number {
  return Number(loadavg()[0]?.toFixed(1))
}

async function postgresVersion(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query('SHOW server_version')
  await client.end()
  return String(rows[0]?.server_version)
}

/** The newest file; undefined before the first run. */
function lastResults(): string | undefined {
  if (!existsSync(RESULTS)) return undefined
  const newest = readdirSync(RESULTS).sort().at(-1)
  return newest === undefined ? undefined : join(RESULTS, newest)
}

function write(results: Results): void {
  mkdirSync(RESULTS, { recursive: true })
  writeFileSync(join(RESULTS, `${results.date}.json`), `${JSON.stringify(results, slim, 2)}\n`)
  writeFileSync(join(ROOT, 'docs', 'benchmarks.md'), page(results))
  console.log(table(results))
}

/** Questions are code; their names are enough in the file. */
function slim(key: string, value: unknown): unknown {
  if (key !== 'question') return value
  return typeof value === 'object' && value !== null && 'id' in value ? value.id : value
}

let plan: Plan | undefined
try {
  if (process.argv.includes('--help')) console.log(USAGE)
  else plan = readPlan(process.argv.slice(2))
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  console.error(USAGE)
  process.exitCode = 2
}
if (plan) await main(plan)
