import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { runInChild } from '../../bench/child.ts'
import type { Contender, Place, Question } from '../../bench/contender.ts'
import { CONTENDERS } from '../../bench/contenders.ts'
import type { Outcome } from '../../bench/outcome.ts'
import { table } from '../../bench/page.ts'
import { order, readPlan } from '../../bench/plan.ts'
import { QUESTIONS } from '../../bench/questions.ts'
import { together } from '../../bench/recorded.ts'

const MESSAGES = 20
const TIMEOUT_MS = 60_000
/** Where nothing is sent, the limit is how long it takes. */
const limitMs = ({ share }: Question): number => (share === 0 ? 200 : 30_000)
const plan = readPlan(['--contender', 'millrace-memory-64', '--contender', 'millrace-sqlite-64'])

for (const question of QUESTIONS) {
  for (const contender of order(plan, question, 0)) {
    test(`the bench can ask ${contender.id}: ${question.id}`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
      t.after(() => rmSync(folder, { recursive: true, force: true }))
      await answers(question, contender, { file: join(folder, 'bench.db'), url: '' })
    })
  }
}

test('asked for help, the bench says its usage and measures nothing', async () => {
  const main = join(import.meta.dirname, '../../bench/main.ts')
  const args = ['--conditions=millrace-source', main, '--help']
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args)
  assert.match(stdout, /^usage: npm run bench -- /)
  assert.equal(stderr, '')
})

const asking = { date: '', rounds: 1, messages: 1, load: [0, 0] } as const

async function answers(question: Question, contender: Contender, place: Place): Promise<void> {
  const figures = await runInChild(
    {
      contender: contender.id,
      place,
      work: {
        kind: 'question',
        question: question.id,
        messages: MESSAGES,
        limitMs: limitMs(question),
      },
    },
    TIMEOUT_MS,
  )
  for (const { name } of question.figures) {
    const value = figures[name]
    assert.ok(value !== undefined && Number.isFinite(value) && value >= 0, `${name}: ${value}`)
  }
  const outcome = { question, contender, asking, figures: [figures], failures: [] }
  const machine = {
    cores: 1,
    memoryGb: 1,
    platform: 'any',
    node: 'any',
    postgres: undefined,
  } as const
  const text = table({ date: '', machine, outcomes: [outcome] })
  assert.match(text, /\| \*\*[\d.,]+\*\* \(/)
}

test('a contender that fails says why', async () => {
  const task = {
    contender: 'millrace-sqlite-64',
    place: { file: '/nowhere/at/all.db', url: '' },
    work: { kind: 'question', question: 'drain', messages: 1, limitMs: 1_000 },
  } as const
  await assert.rejects(runInChild(task, TIMEOUT_MS), /unable to open database file|\/nowhere/)
})

test('a run that asks less keeps the last answers to the rest, in the order of the page', () => {
  const [first, second, third] = QUESTIONS
  const [contender] = CONTENDERS
  assert.ok(first && second && third && contender)
  const answer = (question: Question, rounds: number): Outcome => ({
    question,
    contender,
    asking: { ...asking, rounds },
    figures: [],
    failures: [],
  })
  const all = together([answer(third, 1), answer(second, 1), answer(first, 1)], [answer(second, 2)])
  assert.deepEqual(
    all.map((one) => [one.question.id, one.asking.rounds]),
    [
      [first.id, 1],
      [second.id, 2],
      [third.id, 1],
    ],
  )
})

test('a run on one backend keeps what the others answered to the same question', () => {
  const question = QUESTIONS.find(({ id }) => id === 'drain')
  assert.ok(question)
  const of = (backend: string, rounds: number): Outcome => {
    const contender = CONTENDERS.find((one) => one.backend === backend)
    assert.ok(contender)
    return { question, contender, asking: { ...asking, rounds }, figures: [], failures: [] }
  }
  const all = together([of('redis', 1), of('sqlite', 1)], [of('redis', 2), of('kafka', 2)])
  assert.deepEqual(
    all.map(({ contender, asking: { rounds } }) => [contender.backend, rounds]),
    [
      ['sqlite', 1],
      ['redis', 2],
      ['kafka', 2],
    ],
  )
})

test('on a broker, ours is compared with the client alone and with the other queues apart', () => {
  const question = QUESTIONS.find(({ id }) => id === 'drain')
  assert.ok(question)
  const rates: Record<string, number> = {
    'millrace-redis-64': 90,
    'redis-streams': 100,
    'redis-streams-everysec': 1_000,
    bullmq: 30,
  }
  const outcomes = CONTENDERS.flatMap((contender): Outcome[] => {
    const perSecond = rates[contender.id]
    if (perSecond === undefined) return []
    return [{ question, contender, asking, figures: [{ perSecond }], failures: [] }]
  })
  const machine = { cores: 1, memoryGb: 1, platform: '', node: '', postgres: undefined } as const
  const text = table({ date: '', machine, outcomes })
  assert.match(text, / 1 round of up to 1 messages on /)
  assert.match(text, /beside the client alone \| beside the best other \|/)
  assert.match(text, /\| redis \| Millrace, concurrency 64 .*\| 0\.90x \| 3\.0x \|/)
})

test('nobody is always asked first, and unknown names are refused', () => {
  const [question] = QUESTIONS
  assert.ok(question)
  const all = readPlan([])
  const first = (round: number): string | undefined => order(all, question, round)[0]?.id
  assert.notEqual(first(0), first(1))
  assert.throws(() => readPlan(['--question', 'drian']), /there is no "drian"/)
  assert.throws(() => readPlan(['--backend', 'rabitmq']), /there is no "rabitmq"/)
  assert.throws(() => readPlan(['--rounds', '0']), /at least 1 for --rounds, got "0"/)
  assert.equal(new Set(CONTENDERS.map(({ id }) => id)).size, CONTENDERS.length)
})
