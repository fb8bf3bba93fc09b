// One contender, one question, one run: in a process of its own, so that heaps and leftovers do not mix.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { ContenderModule, Figures, Opened, Place, SendingPlan } from './contender.ts'
import { CONTENDERS } from './contenders.ts'
import { QUESTIONS } from './questions.ts'
import { sendSteadily } from './steady.ts'

/** What the parent asks for, as JSON in the first argument. */
export interface Task {
  readonly contender: string
  readonly place: Place
  readonly work:
    | {
        readonly kind: 'question'
        readonly question: string
        readonly messages: number
        readonly limitMs: number
      }
    | { readonly kind: 'send'; readonly plan: SendingPlan }
}

export type Answer =
  | { readonly ok: true; readonly figures: Figures }
  | { readonly ok: false; readonly why: string }

/** Runs the task in a child process; rejects with the reason that the child gave. */
export async function runInChild(task: Task, timeoutMs: number): Promise<Figures> {
  const child = fork(import.meta.filename, [JSON.stringify(task)], {
    execArgv: ['--conditions=millrace-source', QUIET, ...process.execArgv.filter(isProfile)],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const answered = Promise.withResolvers<Answer>()
  const fail = (why: string): void => answered.resolve({ ok: false, why })
  child.on('message', (message: Answer) => answered.resolve(message))
  child.on('exit', () => fail('the process ended without an answer'))
  const late = setTimeout(() => {
    fail(`no answer within ${timeoutMs} ms`)
    child.kill('SIGKILL')
  }, timeoutMs)
  const exited = once(child, 'exit')
  const answer = await answered.promise
  await exited
  clearTimeout(late)
  if (!answer.ok) throw new Error(answer.why)
  return answer.figures
}

/** Of kafkajs, at every wait. */
const QUIET = '--disable-warning=TimeoutNegativeWarning'

/** So that `node --cpu-prof bench/main.ts …` profiles the contenders. */
function isProfile(argument: string): boolean {
  return argument.startsWith('--cpu-prof')
}

async function perform(task: Task): Promise<Figures> {
  const contender = CONTENDERS.find(({ id }) => id === task.contender)
  if (!contender) throw new Error(`no contender "${task.contender}"`)
  const module: ContenderModule = await import(`./${contender.module}`)
  const open = (): Promise<Opened> => module.open(task.place, contender.variant)
  const { work } = task
  if (work.kind === 'send') {
    const opened = await open()
    await sendSteadily(opened, work.plan)
    await opened.close()
    return {}
  }
  const question = QUESTIONS.find(({ id }) => id === work.question)
  if (!question) throw new Error(`no question "${work.question}"`)
  return await question.ask({
    open,
    messages: work.messages,
    limitMs: work.limitMs,
    async sendElsewhere(plan) {
      await runInChild({ ...task, work: { kind: 'send', plan } }, 60_000)
    },
  })
}

if (import.meta.main) {
  let answer: Answer
  try {
    answer = { ok: true, figures: await perform(JSON.parse(process.argv[2] ?? '')) }
  } catch (error) {
    answer = {
      ok: false,
      why: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }
  }
  // Some contenders keep timers; what they still want to do is not measured any more.
  process.send?.(answer, () => process.exit())
}
