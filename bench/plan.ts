import { parseArgs } from 'node:util'
import { BACKENDS, type Contender, type Question } from './contender.ts'
import { CONTENDERS } from './contenders.ts'
import { QUESTIONS } from './questions.ts'

export const USAGE = `usage: npm run bench -- [--rounds 3] [--messages 100000] [--question ID]… [--contender ID]… [--backend NAME]… [--dry]
  --dry: print the table, write no files
questions:  ${QUESTIONS.map(({ id }) => id).join(' ')}
contenders: ${CONTENDERS.map(({ id }) => id).join(' ')}
backends:   ${BACKENDS.join(' ')}`

/** What is asked, of whom, how often. */
export interface Plan {
  readonly rounds: number
  readonly messages: number
  readonly questions: readonly Question[]
  readonly contenders: readonly Contender[]
  readonly dry: boolean
}

/** @throws with one line that says what was wrong. */
export function readPlan(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '3' },
      messages: { type: 'string', default: '100000' },
      question: { type: 'string', multiple: true, default: [] },
      contender: { type: 'string', multiple: true, default: [] },
      backend: { type: 'string', multiple: true, default: [] },
      dry: { type: 'boolean', default: false },
    },
  })
  const { question, contender, backend, dry } = values
  const known: string[] = [...[...QUESTIONS, ...CONTENDERS].map(({ id }) => id), ...BACKENDS]
  const unknown = [...question, ...contender, ...backend].find((id) => !known.includes(id))
  if (unknown !== undefined) throw new Error(`there is no "${unknown}"`)
  return {
    rounds: whole('rounds', values.rounds),
    messages: whole('messages', values.messages),
    questions: QUESTIONS.filter(({ id }) => question.length === 0 || question.includes(id)),
    contenders: CONTENDERS.filter(
      (one) =>
        (contender.length === 0 || contender.includes(one.id)) &&
        (backend.length === 0 || backend.includes(one.backend)),
    ),
    dry,
  }
}

function whole(name: string, given: string): number {
  const value = Number(given)
  if (!Number.isInteger(value) || value < 1) {
    throw new Error(`expected a whole number of at least 1 for --${name}, got "${given}"`)
  }
  return value
}

/** Who answers this question; the start moves on with each round, so that nobody is always first. */
export function order(plan: Plan, question: Question, round: number): readonly Contender[] {
  const asked = plan.contenders.filter(
    ({ backend, only, ours }) =>
      question.backends.includes(backend) &&
      (ours || !question.oursOnly) &&
      (only === undefined || only.includes(question.id)),
  )
  const start = asked.length === 0 ? 0 : round % asked.length
  return [...asked.slice(start), ...asked.slice(0, start)]
}
