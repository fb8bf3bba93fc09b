import { readFileSync } from 'node:fs'
import { BACKENDS } from './contender.ts'
import type { Machine, Outcome } from './outcome.ts'
import { QUESTIONS } from './questions.ts'

/** What the file keeps of an outcome: of the question, its name. */
type Recorded = Omit<Outcome, 'question'> & { readonly question: string }

/** The last answers, so that a run that asks less than everything takes nothing off the page. */
export function recorded(file: string | undefined): readonly Outcome[] {
  if (file === undefined) return []
  const { outcomes }: { readonly outcomes: readonly Recorded[] } = JSON.parse(
    readFileSync(file, 'utf8'),
  )
  return outcomes.flatMap((outcome) => {
    const question = QUESTIONS.find(({ id }) => id === outcome.question)
    return question === undefined ? [] : [{ ...outcome, question }]
  })
}

/** Of the last run that had one. */
export function recordedPostgres(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  const { machine }: { readonly machine: Machine } = JSON.parse(readFileSync(file, 'utf8'))
  return machine.postgres
}

/** The new answers, and the old ones of what was not asked again, in the order of the page. */
export function together(old: readonly Outcome[], asked: readonly Outcome[]): readonly Outcome[] {
  // Whoever shares a backend is compared, which only means something within one run.
  const isAskedAgain = ({ question, contender }: Outcome): boolean =>
    asked.some((one) => one.question === question && one.contender.backend === contender.backend)
  const all = [...old.filter((one) => !isAskedAgain(one)), ...asked]
  return QUESTIONS.flatMap((question) =>
    BACKENDS.flatMap((backend) =>
      all.filter((one) => one.question === question && one.contender.backend === backend),
    ),
  )
}
